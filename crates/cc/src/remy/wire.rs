//! The wire format of protocol buffers, as far as rule tables use it.

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Varint(u64),
    Double(f64),
    Bytes(&'a [u8]),
    /// Four bytes, of a field that no rule table has.
    Other,
}

/// Fields of a message: number and value. Ends after the first mistake, which is `None`.
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Self {
        Self(message)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(head)
    }

    fn field(&mut self) -> Option<(u64, Value<'a>)> {
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Double(f64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Value::Other)?,
            _ => return None,
        };
        Some((key >> 3, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Option<(u64, Value<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field)
    }
}

/// The variable-length integers that these bytes are made of (a packed field).
pub(super) fn varints(bytes: &[u8]) -> Option<Vec<u64>> {
    let mut fields = Fields(bytes);
    let mut values = Vec::new();
    while !fields.0.is_empty() {
        values.push(fields.varint()?);
    }
    Some(values)
}

/// The signed number of a zig-zag integer.
pub(super) fn signed(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

/// Writes fields.
#[derive(Default)]
pub(super) struct Message(pub(super) Vec<u8>);

impl Message {
    fn push(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub(super) fn varint(&mut self, number: u64, value: u64) {
        self.push(number << 3);
        self.push(value);
    }

    pub(super) fn signed(&mut self, number: u64, value: i64) {
        self.varint(number, (value << 1).cast_unsigned() ^ (value >> 63).cast_unsigned());
    }

    pub(super) fn double(&mut self, number: u64, value: f64) {
        self.push(number << 3 | 1);
        self.0.extend(value.to_le_bytes());
    }

    pub(super) fn message(&mut self, number: u64, message: &Self) {
        self.push(number << 3 | 2);
        self.push(message.0.len() as u64);
        self.0.extend(&message.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples of the format's documentation: field 1 is 150, zig-zag, a packed field.
    #[test]
    fn examples_of_the_documentation() {
        let fields: Vec<_> = Fields::of(&[0x08, 0x96, 0x01]).collect();
        assert_eq!(fields, [Some((1, Value::Varint(150)))]);
        assert_eq!([0, 1, 2, 3, 0xffff_fffe, 0xffff_ffff].map(signed), [0, -1, 1, -2, 0x7fff_ffff, -0x8000_0000]);
        assert_eq!(varints(&[0x03, 0x8e, 0x02, 0x9e, 0xa7, 0x05]), Some(vec![3, 270, 86942]));
        assert_eq!(varints(&[0x8e]), None);
    }

    #[test]
    fn what_is_written_is_read() {
        let mut inner = Message::default();
        inner.double(21, -0.5);
        let mut message = Message::default();
        message.signed(31, -300);
        message.message(2, &inner);
        message.varint(13, 5);
        let fields: Vec<_> = Fields::of(&message.0).map(Option::unwrap).collect();
        let Value::Varint(number) = fields[0].1 else { panic!("{fields:?}") };
        assert_eq!((fields[0].0, signed(number)), (31, -300));
        assert_eq!(fields[1..], [(2, Value::Bytes(&inner.0)), (13, Value::Varint(5))]);
        assert_eq!(Fields::of(&inner.0).next(), Some(Some((21, Value::Double(-0.5)))));
        for cut in 1..message.0.len() {
            let fields: Vec<_> = Fields::of(&message.0[..cut]).collect();
            assert!(fields.len() <= 3, "it ends");
        }
        assert_eq!(Fields::of(&[0x0b]).collect::<Vec<_>>(), [None], "groups are not read");
    }
}
