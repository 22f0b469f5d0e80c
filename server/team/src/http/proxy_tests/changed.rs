//! What is changed or taken away between two calls holds for the second one.

use super::*;

/// Asks with what a client would send as a provider's key.
async fn status(proxy: &Proxy, secret: &Secret) -> u16 {
    let request = proxy.request("nobody", "POST", CHAT);
    let request = request.header("x-api-key", secret.reveal());
    proxy.chat(request).await.status().as_u16()
}

on_each_database!(what_is_changed_or_taken_away_holds_for_the_very_next_call);
async fn what_is_changed_or_taken_away_holds_for_the_very_next_call(store: Store) {
    let stub = Stub::start(one(USAGE)).await;
    let proxy = Proxy::to(store, &stub).await;
    let (store, root) = (&proxy.store, by("root"));
    let admin = store.member("root").await.unwrap();
    let project = store.project(&admin, "help-desk").await.unwrap().0;
    let (token, pass) = (
        &proxy.tokens[0].1,
        proxy.server.issue_pass(&proxy.editor, &project.id),
    );
    let of_admin = Secret::new("capo_");
    let added = store.add_token(&root, &admin, &of_admin, "ci", TokenScope::Write, NOW + 1000);
    added.await.unwrap();
    let statuses = async || [status(&proxy, token).await, status(&proxy, &pass).await];
    assert_eq!(statuses().await, [200, 200]);
    for (most, expected) in [(Some(2), [429, 429]), (Some(3), [200, 429]), (None, [200, 200])] {
        let limits = Limits {
            usd_per_day: None,
            requests_per_day: most,
        };
        let whose = (Scope::Member, proxy.editor.as_str());
        store.set_limits(&root, whose, "ed", limits).await.unwrap();
        assert_eq!(statuses().await, expected, "{most:?}");
    }
    let roles = [Some(Role::Viewer), None, Some(Role::Editor)];
    for (role, expected) in roles.into_iter().zip([403, 404, 200]) {
        store.set_role(&root, &project, "ed", role).await.unwrap();
        assert_eq!(statuses().await, [expected; 2], "{role:?}");
    }
    // Who administers the server asks on any project's account, with a role in it or without.
    assert_eq!(status(&proxy, &of_admin).await, 200);
    store.set_role(&root, &project, "root", None).await.unwrap();
    assert_eq!(status(&proxy, &of_admin).await, 200);
    store.add_member(&root, "eve", "kept", true).await.unwrap();
    let demoted = store.change_member(&root, "root", Some(false), None);
    demoted.await.unwrap();
    assert_eq!(status(&proxy, &of_admin).await, 404);
    let mut record = key_record(&format!("http://{}/v1", stub.address));
    (record["projects"], record["models"]) = (json!([project.id]), json!([]));
    let key: SharedKey = serde_json::from_value(record).unwrap();
    store.change_key(&root, &key, None, &proxy.master).await.unwrap();
    assert_eq!(statuses().await, [403, 403], "it is for no model");
    let editor = store.member("ed").await.unwrap();
    let id = store.tokens(&editor).await.unwrap().remove(0).id;
    store.withdraw_token(&root, &editor, &id).await.unwrap();
    assert_eq!(statuses().await, [401, 403]);
    store.change_member(&root, "ed", None, Some(true)).await.unwrap();
    assert_eq!(statuses().await, [401, 404]);
    proxy.server.dismiss(&pass);
    assert_eq!(statuses().await, [401, 401]);
}
