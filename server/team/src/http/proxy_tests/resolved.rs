//! Which addresses a provider's name leads to, whoever says so.

use std::collections::VecDeque;
use std::sync::Mutex;

use capo_gateway::is_public;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::*;
use crate::http::proxy::{Providers, Public, System};

fn addresses(all: &[&str]) -> Vec<SocketAddr> {
    let address = |ip: &&str| SocketAddr::new(ip.parse().unwrap(), 0);
    all.iter().map(address).collect()
}

/// Finds for any name what it was told, one after the other.
struct Scripted(Mutex<VecDeque<Vec<SocketAddr>>>);

impl Scripted {
    fn new(found: impl IntoIterator<Item = Vec<SocketAddr>>) -> Self {
        Self(Mutex::new(found.into_iter().collect()))
    }
}

impl Resolve for Scripted {
    fn resolve(&self, _: Name) -> Resolving {
        let found = self.0.lock().unwrap().pop_front().unwrap();
        Box::pin(async move { Ok(Box::new(found.into_iter()) as Addrs) })
    }
}

/// What another finds, with an address of this machine in place of public ones.
struct Near<R>(R, SocketAddr);

impl<R: Resolve> Resolve for Near<R> {
    fn resolve(&self, name: Name) -> Resolving {
        let (found, near) = (self.0.resolve(name), self.1);
        Box::pin(async move {
            let found: Vec<_> = found
                .await?
                .map(|address| if is_public(address.ip()) { near } else { address })
                .collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Hangs up on everybody, and counts them.
async fn hanging_up() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, counted) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let count = counted.clone();
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            count.fetch_add(1, Relaxed);
        }
    });
    (address, counted)
}

#[tokio::test]
async fn a_name_leads_to_its_public_addresses_whatever_it_led_to_before() {
    let name = |name: &str| name.parse::<Name>().unwrap();
    let found = Public(System).resolve(name("localhost")).await;
    assert!(found.is_err(), "it resolves to loopback addresses only");
    let (v4, v6) = ("8.8.8.8", "2606:4700::1111");
    let cases: [(&[&str], &[&str]); 13] = [
        (&[v4], &[v4]),
        (&["127.0.0.1"], &[]),
        (&[v4, v6], &[v4, v6]),
        (&["127.0.0.1", v4, "10.0.0.1", "::1", v6], &[v4, v6]),
        (&["169.254.169.254"], &[]),
        (&["::1"], &[]),
        (&["::"], &[]),
        (&["::ffff:127.0.0.1"], &[]),
        (&["::7f00:1"], &[]),
        (&["64:ff9b::7f00:1"], &[]),
        (&["fc00::1"], &[]),
        (&["fe80::1"], &[]),
        (&[], &[]),
    ];
    let resolver = Public(Scripted::new(cases.map(|(found, _)| addresses(found))));
    for (found, public) in cases {
        let resolved = resolver.resolve(name("provider.example")).await;
        let resolved: Option<Vec<SocketAddr>> = resolved.ok().map(Iterator::collect);
        let expected = Some(addresses(public)).filter(|public| !public.is_empty());
        assert_eq!(resolved, expected, "{found:?}");
    }
}

on_each_database!(a_providers_name_is_resolved_for_each_call_and_no_private_address_connected_to);
async fn a_providers_name_is_resolved_for_each_call_and_no_private_address_connected_to(store: Store) {
    let mut proxy = Proxy::new(store, "http://127.0.0.1:1/v1", [Limits::default(); 3]).await;
    let kept = proxy.store.key("team").await.unwrap().unwrap();
    // It has no port: those of the addresses count.
    let mut record = key_record("https://provider.example/v1");
    record["projects"] = json!(kept.key.record().projects);
    record["private_host"] = json!(false);
    let key: SharedKey = serde_json::from_value(record).unwrap();
    proxy
        .store
        .change_key(&by("root"), &key, Some(KEY), &proxy.master)
        .await
        .unwrap();
    let ((outside, reached), (inside, reached_inside)) = (hanging_up().await, hanging_up().await);
    let public = addresses(&["8.8.8.8"])[0];
    let told = Scripted::new([vec![public], vec![inside], vec![inside, public]]);
    let settings = Settings {
        master: Some(proxy.master.clone()),
        ..Settings::default()
    };
    let mut server = Server::new(proxy.store.clone(), || NOW, settings).unwrap();
    Arc::get_mut(&mut server.0).unwrap().providers = Providers::new(Near(Public(told), outside)).unwrap();
    proxy.router = router(server, None);
    for connected in [1, 1, 2] {
        let response = proxy.chat(proxy.request("editor", "POST", CHAT)).await;
        assert_eq!(text(response).await.0, 502, "nobody answers");
        let counted = (reached.load(Relaxed), reached_inside.load(Relaxed));
        assert_eq!(counted, (connected, 0));
    }
}
