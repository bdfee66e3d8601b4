//! What the BPF program and Rust share, as `src/bpf/{intf,flow}.h` define it.
#![allow(
    missing_docs,
    dead_code,
    clippy::unreadable_literal,
    clippy::unnecessary_cast,
    reason = "generated; the headers say it"
)]

/// Structures of integers: any bytes are a value.
///
/// # Safety
/// No other fields, and no padding.
pub unsafe trait Plain: Copy {}

/// All bytes zero.
pub fn zeroed<T: Plain>() -> Box<T> {
    let layout = std::alloc::Layout::new::<T>();
    // SAFETY: zeros are a value of plain structures, and none of them has the size 0.
    unsafe {
        let pointer = std::alloc::alloc_zeroed(layout);
        if pointer.is_null() {
            std::alloc::handle_alloc_error(layout);
        }
        Box::from_raw(pointer.cast())
    }
}

/// The bytes of a value.
pub fn bytes_of<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: plain structures have no padding.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// The value in these bytes, if there are as many as it has.
pub fn from_bytes<T: Plain>(bytes: &[u8]) -> Option<T> {
    // SAFETY: any bytes are a value, and the read does not ask for alignment.
    (bytes.len() == size_of::<T>()).then(|| unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) })
}

include!(concat!(env!("OUT_DIR"), "/intf.rs"));
