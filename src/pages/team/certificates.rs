//! Certificates of a project: what its runs tested.

use capo_api::{CertificateShown, ClientError, VersionNamed};
use leptos::prelude::*;
use leptos_router::components::A;

use super::list::{Earlier, List, Listing, when};
use crate::format::id;
use crate::storage::mirror_id;
use crate::team::Server;

/// A certificate, and where the list goes on after the last one of a page.
type Row = (CertificateShown, Option<String>);

/// A page of the list: the first, or the one that an earlier one leads to.
async fn page(server: &Server, project: &str, mut before: Option<String>) -> Result<Vec<Row>, ClientError> {
    loop {
        let page = server.certificates(project, before.as_deref()).await?;
        let mut rows: Vec<Row> = page.certificates.into_iter().map(|one| (one, None)).collect();
        match rows.last_mut() {
            Some((_, next)) => *next = page.before,
            None if page.before.is_some() => {
                before = page.before;
                continue;
            }
            None => {}
        }
        return Ok(rows);
    }
}

/// Lists them, the latest first.
#[component]
pub(super) fn CertificatesOf(project: String) -> impl IntoView {
    let (of, earlier) = (project.clone(), project.clone());
    // A row is drawn anew when anything in it has changed.
    let key = |row: &Row| format!("{row:?}");
    let listing = Listing::new(key, async move |server: Server| page(&server, &of, None).await);
    let read = async move |server: Server, (_, next): Row| page(&server, &earlier, next).await;
    let cells = move |(one, _): Row| {
        let run = format!("/run/{}", mirror_id(&one.run));
        let candidate = one.certificate.candidate;
        let prompt = format!("{run}/candidate/{candidate}");
        let version = |version: VersionNamed| {
            let name = format!("{} {}", version.prompt, version.version);
            let (prompt, number) = (version.prompt, version.version);
            let address = format!("/team/projects/{project}/prompts/{prompt}?version={number}");
            view! { <A href=address>{name}</A> " " }
        };
        let versions = one.versions.into_iter().map(version).collect_view();
        vec![
            view! { <A href=prompt><b>{id(&candidate)}</b></A> " " {one.prompt} }.into_any(),
            one.certificate.sentence().into_any(),
            view! { <A href=run>{one.run_name}</A> }.into_any(),
            versions.into_any(),
            when(one.at),
        ]
    };
    let columns = &["Prompt", "Test", "Run", "Versions of this text", "When"];
    let empty = "None yet. A run tests what it found where its study keeps examples for that ([confirm]); the journal of a \
                 test by capo certify comes here by capo runs push.";
    view! {
        <List id="certificates" title="Certificates" listing columns empty cells>
            <Earlier listing is_end=|(_, next): &Row| next.is_none() read/>
        </List>
    }
}
