//! `capo optimize --remote`: a search on a team server.

use std::path::Path;

use capo_api::{Moment, Title};

use super::server::{project, refused, server, title};
use super::watch::{Telling, watch};
use super::words::{command, sentence};
use crate::cli::failure::{Ending, Failure, print, print_json};
use crate::remote::StudyBundle;
use crate::session::{StudyFile, block_on};
use crate::stderr::warn;

/// A search that a team server makes.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct OnServer {
    /// Run it on this team server, with the personal token in the variable `CAPO_TOKEN`, and watch it; on the one that
    /// `CAPO_REMOTE` names if no URL follows.
    #[arg(long, value_name = "URL", num_args = 0..=1, conflicts_with_all = ["journal", "out", "fsync", "prices", "reuse", "from"])]
    #[expect(clippy::option_option, reason = "the option may stand alone")]
    remote: Option<Option<String>>,
    /// The project; the only one in which you may start runs unless stated.
    #[arg(long, value_name = "NAME", requires = "remote")]
    project: Option<String>,
    /// What the run is called; like its study unless stated.
    #[arg(long, value_name = "TEXT", requires = "remote")]
    name: Option<Title>,
    /// Do not start it before this moment, such as 2027-03-01T22:00:00+01:00.
    #[arg(long, value_name = "TIME", requires = "remote", value_parser = moment)]
    start_at: Option<Moment>,
    /// Print the run's id and leave it to the server.
    #[arg(long, requires = "remote")]
    detach: bool,
}

/// A moment with its offset from UTC, as it is typed.
fn moment(text: &str) -> Result<Moment, String> {
    let moment: jiff::Timestamp = text.parse().map_err(|_| {
        "write it as date, time and offset from UTC (RFC 3339), such as 2027-03-01T22:00:00+01:00 or 2027-03-01T21:00:00Z"
            .to_owned()
    })?;
    Ok(moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

impl OnServer {
    /// Whether a server is to make the search.
    pub(crate) fn is_asked_for(&self) -> bool {
        self.remote.is_some()
    }

    /// Starts the search of a study, whose file lies at `path`, and watches it.
    pub(crate) fn run(&self, file: &StudyFile, path: &Path, telling: Telling) -> Result<Ending, Failure> {
        let named = self
            .remote
            .clone()
            .flatten()
            .or_else(|| std::env::var("CAPO_REMOTE").ok());
        let server = server(named.as_deref())?;
        let name = title(self.name.as_ref(), &file.study.study.name)?;
        // Everything that can be wrong with the study is found before the server is asked.
        let bundle = StudyBundle::of(file)?;
        block_on(async {
            let project = project(&server, self.project.as_deref()).await?;
            let started = bundle
                .start(&server.client(), &project, name, self.start_at.clone())
                .await;
            let run = started.map_err(|error| refused(&server, &error))?;
            let watching = command("watch", &server, &run.id);
            if !self.detach {
                warn(&format!(
                    "started on {}; to watch it again, run: {watching}",
                    server.origin()
                ));
                return watch(&server, &run.id, telling, Some(path)).await;
            }
            if telling.json {
                print_json(&run)?;
            } else {
                print(&format!("{}\n", run.id))?;
            }
            warn(&format!("{}. To watch it, run: {watching}", sentence(&run)));
            Ok(Ending::Done)
        })?
    }
}
