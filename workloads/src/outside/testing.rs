//! A server on loopback, for the tests of what is asked by HTTP.

use std::rc::Rc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Serves connections on loopback with `respond`, which gets the request's text.
pub(crate) async fn serve<R, F>(respond: R) -> String
where
    R: Fn(String) -> F + 'static,
    F: Future<Output = String> + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/agent", listener.local_addr().unwrap());
    let respond = Rc::new(respond);
    tokio::task::spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let respond = Rc::clone(&respond);
            tokio::task::spawn_local(async move { converse(stream, &*respond).await });
        }
    });
    address
}

pub(crate) async fn converse<R, F>(mut stream: TcpStream, respond: &R)
where
    R: Fn(String) -> F,
    F: Future<Output = String>,
{
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    let complete = |request: &[u8]| {
        let text = String::from_utf8_lossy(request);
        text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
            let length = head.lines().find_map(|line| {
                line.to_lowercase()
                    .strip_prefix("content-length: ")
                    .map(str::to_owned)
            });
            length.is_some_and(|length| body.len() >= length.trim().parse().unwrap())
        })
    };
    while !complete(&request) {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(count) => request.extend_from_slice(&buffer[..count]),
        }
    }
    let response = respond(String::from_utf8(request).unwrap()).await;
    let _ = stream.write_all(response.as_bytes()).await;
}

pub(crate) fn http(status: &str, head: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n{head}\r\n{body}",
        body.len()
    )
}
