//! Connections: how many there may be, how long one may keep the server waiting, and how they end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use capo_team::{Places, network};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tower::Service as _;

/// Connections at a time: more than the requests, calls and watchers that are answered.
pub(super) const CONNECTIONS: usize = 4096;

/// How long a client may take to agree on how to encrypt.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long it may take to send the head of a request, and stay without one: reverse proxies keep connections for the next
/// request, those that are used most for two minutes.
const HEAD: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 150 });

/// How long a client may take no byte of its answer.
const TAKE: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 120 });

/// How long to wait where the system has no more files for connections.
const PAUSE: Duration = Duration::from_secs(1);

/// Serves until `ending` is done and what is under way has ended; encrypted where there is something to encrypt with. No
/// network has more than its share of the connections, and what comes beyond that is closed at once.
pub(super) async fn answer(
    listener: TcpListener,
    config: Option<watch::Receiver<Arc<ServerConfig>>>,
    router: Router,
    share: usize,
    ending: impl Future<Output = ()>,
) {
    let places = Places::new(CONNECTIONS, share);
    let graceful = GracefulShutdown::new();
    let mut ending = std::pin::pin!(ending);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut ending => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) if is_of_the_client(&error) => continue,
            Err(error) => {
                tracing::error!(%error, "no connection could be accepted");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let Some(place) = places.take(&network(peer.ip())) else {
            continue;
        };
        // A piece of an answer is not to wait until the one before it has arrived; who has gone is noticed below.
        let _ = stream.set_nodelay(true);
        let acceptor = config
            .as_ref()
            .map(|config| TlsAcceptor::from(Arc::clone(&config.borrow())));
        let (router, watcher) = (router.clone(), graceful.watcher());
        tokio::spawn(async move {
            attend(stream, peer, acceptor, router, watcher).await;
            drop(place);
        });
    }
    drop(listener);
    graceful.shutdown().await;
}

/// Whether a client has gone before it was accepted.
fn is_of_the_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}

/// Answers a client for as long as it stays. One who goes away, or speaks no TLS or HTTP, is nobody's concern.
async fn attend(
    stream: TcpStream,
    peer: SocketAddr,
    acceptor: Option<TlsAcceptor>,
    router: Router,
    watcher: Watcher,
) {
    let Some(acceptor) = acceptor else {
        return serve(stream, peer, router, watcher).await;
    };
    let encrypted = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await;
    if let Ok(Ok(encrypted)) = encrypted {
        serve(encrypted, peer, router, watcher).await;
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    peer: SocketAddr,
    router: Router,
    watcher: Watcher,
) {
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        router.clone().call(request)
    });
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(TAKE));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .serve_connection(TokioIo::new(Box::pin(stream)), service);
    let _ = watcher.watch(connection).await;
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::oneshot;

    use super::*;

    /// A server of which one address gets two connections.
    async fn serving() -> (SocketAddr, oneshot::Sender<()>, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let who = async |ConnectInfo(peer): ConnectInfo<SocketAddr>| peer.ip().to_string();
        let much = axum::routing::get(async || vec![0; MUCH]);
        let router = Router::new()
            .route("/", axum::routing::get(who))
            .route("/much", much);
        let (end, ending) = oneshot::channel();
        let ending = async move { drop(ending.await) };
        let served = tokio::spawn(answer(listener, None, router, 2, ending));
        (address, end, served)
    }

    /// What comes until the server closes the connection.
    async fn rest(mut stream: TcpStream) -> String {
        let mut text = String::new();
        // One that is closed with something unread is reset.
        let _ = stream.read_to_string(&mut text).await;
        text
    }

    const WHOLE: &[u8] = b"GET / HTTP/1.1\r\nhost: here\r\n\r\n";
    const LARGE: &[u8] = b"GET /much HTTP/1.1\r\nhost: here\r\n\r\n";

    /// Bytes of an answer that no socket holds by itself.
    const MUCH: usize = 64 << 20;

    #[tokio::test]
    async fn who_never_ends_a_request_is_let_go_and_has_no_more_than_a_share_until_then() {
        let (address, _end, _served) = serving().await;
        let mut held = Vec::new();
        for _ in 0..2 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nhost:").await.unwrap();
            held.push(stream);
        }
        let mut third = TcpStream::connect(address).await.unwrap();
        let _ = third.write_all(WHOLE).await;
        assert_eq!(rest(third).await, "");
        for stream in held {
            let text = rest(stream).await;
            assert!(!text.contains("200 OK"), "{text}");
        }
        let mut fourth = TcpStream::connect(address).await.unwrap();
        fourth.write_all(WHOLE).await.unwrap();
        let text = rest(fourth).await;
        assert!(text.contains("200 OK") && text.ends_with("127.0.0.1"), "{text}");
    }

    #[tokio::test]
    async fn who_takes_nothing_of_an_answer_is_let_go() {
        let (address, _end, _served) = serving().await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(LARGE).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        tokio::time::sleep(2 * TAKE).await;
        let mut left = Vec::new();
        let _ = stream.read_to_end(&mut left).await;
        assert!(left.len() < MUCH, "{} bytes", left.len());
    }

    #[tokio::test]
    async fn one_that_waits_for_its_next_request_keeps_no_server_from_ending() {
        let (address, end, served) = serving().await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(WHOLE).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
        end.send(()).unwrap();
        served.await.unwrap();
        assert!(TcpStream::connect(address).await.is_err());
    }
}
