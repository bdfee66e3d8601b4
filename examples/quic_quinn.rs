//! Astraea in one's own quinn endpoint: `cargo run -p astraea-quic --all-features --example quic_quinn`.

use std::{error::Error, sync::Arc};

use astraea_quic::{Scheme, quinn::Factory};
use quinn::rustls::{RootCertStore, pki_types::PrivatePkcs8KeyDer};
use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig};

/// Sends `data` from one endpoint to another; returns what arrived.
pub(crate) async fn transfer(data: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let (certificate, key) = (made.cert.der().clone(), PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let config = ServerConfig::with_single_cert(vec![certificate.clone()], key.into())?;
    let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;

    // All that Astraea needs: a transport whose connections are controlled by the scheme of that name.
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(Factory::new(Scheme::named("astraea", &[])?)));

    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(Arc::new(transport));
    let mut client = Endpoint::client("127.0.0.1:0".parse()?)?;
    client.set_default_client_config(config);

    let accepting =
        async { server.accept().await.ok_or("the server has stopped")?.await.map_err(Box::<dyn Error>::from) };
    let (sender, receiver) = tokio::join!(client.connect(server.local_addr()?, "localhost")?, accepting);
    let (sender, receiver) = (sender?, receiver?);
    let mut stream = sender.open_uni().await?;
    let sending = async {
        stream.write_all(data).await?;
        Ok::<_, Box<dyn Error>>(stream.finish()?)
    };
    let receiving = async { Ok(receiver.accept_uni().await?.read_to_end(usize::MAX).await?) };
    Ok(tokio::try_join!(sending, receiving)?.1)
}

#[allow(dead_code, reason = "a test calls `transfer` by itself")]
fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let received = runtime.block_on(transfer(&vec![7; 10_000_000]))?;
    assert_eq!(received.len(), 10_000_000);
    Ok(())
}
