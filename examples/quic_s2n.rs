//! Astraea in one's own s2n-quic endpoint: `cargo run -p astraea-quic --all-features --example quic_s2n`.

use std::error::Error;

use astraea_quic::{Scheme, s2n};
use s2n_quic::{Client, Server, client::Connect, provider::tls::rustls};

/// Sends `data` from one endpoint to another; returns what arrived.
pub(crate) async fn transfer(data: &[u8]) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let tls = rustls::Server::builder().with_certificate(certificate.as_str(), key.as_str())?.build()?;
    let mut server = Server::builder().with_tls(tls)?.with_io("127.0.0.1:0")?.start()?;

    let tls = rustls::Client::builder().with_certificate(certificate.as_str())?.build()?;
    let client = Client::builder()
        .with_tls(tls)?
        .with_io("127.0.0.1:0")?
        // All that Astraea needs: the connections of this endpoint are controlled by the scheme of that name.
        .with_congestion_controller(s2n::Endpoint::new(Scheme::named("astraea", &[])?))?
        .start()?;

    let connect = Connect::new(server.local_addr()?).with_server_name("localhost");
    let accepting = async { server.accept().await.ok_or("the server has stopped") };
    let (sender, receiver) = tokio::join!(client.connect(connect), accepting);
    let (mut sender, mut receiver) = (sender?, receiver?);
    let mut stream = sender.open_send_stream().await?;
    let sending = async {
        stream.send(data.to_vec().into()).await?;
        Ok::<_, Box<dyn Error + Send + Sync>>(stream.finish()?)
    };
    let receiving = async {
        let mut stream = receiver.accept_receive_stream().await?.ok_or("the sender has gone")?;
        let mut received = Vec::new();
        while let Some(chunk) = stream.receive().await? {
            received.extend_from_slice(&chunk);
        }
        Ok(received)
    };
    Ok(tokio::try_join!(sending, receiving)?.1)
}

#[allow(dead_code, reason = "a test calls `transfer` by itself")]
fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let received = runtime.block_on(transfer(&vec![7; 10_000_000]))?;
    assert_eq!(received.len(), 10_000_000);
    Ok(())
}
