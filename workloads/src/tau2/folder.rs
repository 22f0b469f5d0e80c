//! The benchmark's data folder and what each domain reads of it.

use std::fmt;

use capo_core::study::suggest;

use super::airline::Airline;
use super::environment::World;
use super::retail::Retail;
use super::settings::{DomainName, Policy};
use super::task::Task;
use super::telecom::Telecom;
use crate::files::{FileError, Files, Sources};
use crate::settings::BuildError;

/// What a domain reads of the data folder, relative to it.
pub fn files(domain: DomainName) -> &'static [&'static str] {
    match domain {
        DomainName::Airline => &[
            "domains/airline/db.json",
            "domains/airline/policy.md",
            "domains/airline/tasks.json",
            "domains/airline/split_tasks.json",
            "user_simulator/simulation_guidelines.md",
        ],
        DomainName::Retail => &[
            "domains/retail/db.json",
            "domains/retail/policy.md",
            "domains/retail/tasks.json",
            "domains/retail/split_tasks.json",
            "user_simulator/simulation_guidelines.md",
        ],
        DomainName::Telecom => &[
            "domains/telecom/db.toml",
            "domains/telecom/user_db.toml",
            "domains/telecom/main_policy.md",
            "domains/telecom/tech_support_manual.md",
            "domains/telecom/tech_support_workflow.md",
            "domains/telecom/tasks.json",
            "domains/telecom/split_tasks.json",
            "user_simulator/simulation_guidelines_tools.md",
        ],
    }
}

/// A world that is read from the benchmark's data folder.
pub trait Domain: World {
    /// What a rewriter is told of the deployment; whom the agent serves and what it does there.
    const ABOUT: &'static str;

    /// The world before any task.
    ///
    /// # Errors
    /// What is missing or does not read.
    fn read(folder: &mut Folder<'_, '_>) -> Result<Self, BuildError>;

    /// The policy that stands beside the candidate prompt.
    ///
    /// # Errors
    /// What is missing, or that there is no such policy.
    fn policy(folder: &mut Folder<'_, '_>, policy: Policy) -> Result<String, BuildError>;
}

/// A domain's world and all its tasks, from the folder `root`.
///
/// # Errors
/// What is missing or does not read.
pub fn read<W: Domain>(files: &dyn Files, root: &str) -> Result<(W, Vec<Task>), BuildError> {
    let mut sources = Sources::new(files);
    let mut folder = Folder::new(&mut sources, root, W::NAME);
    Ok((<W as Domain>::read(&mut folder)?, folder.tasks()?))
}

/// The folder `data/tau2` of a checkout.
pub struct Folder<'a, 'f> {
    sources: &'a mut Sources<'f>,
    root: String,
    domain: &'static str,
}

impl<'a, 'f> Folder<'a, 'f> {
    /// The folder at `root`, looked at for a domain.
    pub(crate) fn new(sources: &'a mut Sources<'f>, root: &str, domain: &'static str) -> Self {
        Self {
            sources,
            root: root.trim_end_matches('/').to_owned(),
            domain,
        }
    }

    /// A file of the domain.
    fn of_domain(&mut self, name: &str) -> Result<Text, BuildError> {
        self.text(&format!("domains/{}/{name}", self.domain))
    }

    fn text(&mut self, path: &str) -> Result<Text, BuildError> {
        let path = format!("{}/{path}", self.root);
        let bytes = self.sources.read(&path).map_err(|error| match error {
            FileError::NotFound(path) => BuildError::setting(
                "workload.data",
                format!(
                    "no file `{path}`; `data` names the folder data/tau2 of a checkout of tau2-bench, relative to \
                     the study file's folder"
                ),
            ),
            other => BuildError::file("workload.data", other),
        })?;
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Text { path, text }),
            Err(_) => Err(BuildError::data(&path, "is not UTF-8 text")),
        }
    }

    /// All tasks of the domain.
    ///
    /// # Errors
    /// When the file is missing or does not hold tasks.
    pub fn tasks(&mut self) -> Result<Vec<Task>, BuildError> {
        let file = self.of_domain("tasks.json")?;
        file.parse(|text| serde_json::from_str(text))
    }

    /// The named lists of task ids of the domain.
    ///
    /// # Errors
    /// When the file is missing or does not hold such lists.
    pub fn splits(&mut self) -> Result<indexmap::IndexMap<String, Vec<String>>, BuildError> {
        let file = self.of_domain("split_tasks.json")?;
        file.parse(|text| serde_json::from_str(text))
    }

    /// What the model that plays users is told first; users with tools of their own are told of them.
    ///
    /// # Errors
    /// When the file is missing.
    pub fn guidelines(&mut self, has_tools: bool) -> Result<String, BuildError> {
        let name = if has_tools {
            "simulation_guidelines_tools.md"
        } else {
            "simulation_guidelines.md"
        };
        Ok(self.text(&format!("user_simulator/{name}"))?.text)
    }
}

/// A file that was read.
struct Text {
    path: String,
    text: String,
}

impl Text {
    fn parse<T, E: fmt::Display>(&self, parse: impl Fn(&str) -> Result<T, E>) -> Result<T, BuildError> {
        parse(&self.text).map_err(|error| BuildError::data(&self.path, suggest(&error.to_string())))
    }
}

/// `policy.md`, the only policy of a domain.
fn only_policy(folder: &mut Folder<'_, '_>, policy: Policy) -> Result<String, BuildError> {
    match policy {
        Policy::Manual => Ok(folder.of_domain("policy.md")?.text),
        Policy::Workflow => Err(BuildError::setting(
            "workload.policy",
            format!("{} has one policy only; leave `policy` out", folder.domain),
        )),
    }
}

impl Domain for Airline {
    const ABOUT: &'static str = "The prompt instructs a customer-service agent of an airline that talks to one customer in a \
        chat and acts through tools: it looks up customers, reservations and flights, books, changes and cancels \
        reservations, changes baggage and passengers, sends certificates, and can hand over to a human.";

    fn read(folder: &mut Folder<'_, '_>) -> Result<Self, BuildError> {
        let file = folder.of_domain("db.json")?;
        file.parse(|text| Self::read(text.as_bytes()))
    }

    fn policy(folder: &mut Folder<'_, '_>, policy: Policy) -> Result<String, BuildError> {
        only_policy(folder, policy)
    }
}

impl Domain for Retail {
    const ABOUT: &'static str = "The prompt instructs a customer-service agent of an online shop that talks to one customer in a \
        chat and acts through tools: it finds customers, orders and products, cancels and changes pending orders, \
        returns and exchanges delivered items, changes addresses, and can hand over to a human.";

    fn read(folder: &mut Folder<'_, '_>) -> Result<Self, BuildError> {
        let file = folder.of_domain("db.json")?;
        file.parse(|text| Self::read(text.as_bytes()))
    }

    fn policy(folder: &mut Folder<'_, '_>, policy: Policy) -> Result<String, BuildError> {
        only_policy(folder, policy)
    }
}

impl Domain for Telecom {
    const ABOUT: &'static str = "The prompt instructs a customer-service agent of a telephone company that talks to one customer in \
        a chat and acts through tools: it looks up customers, lines, bills and data usage, suspends and resumes \
        lines, sends payment requests, refuels data, switches roaming, and can hand over to a human. The customer has a \
        telephone at hand with settings that only they can look at and change, so the agent must guide them.";

    fn read(folder: &mut Folder<'_, '_>) -> Result<Self, BuildError> {
        let company = folder.of_domain("db.toml")?;
        let telephone = folder.of_domain("user_db.toml")?;
        Self::read(&company.text, &telephone.text).map_err(|error| {
            let file = if error.is_of_telephone() {
                telephone
            } else {
                company
            };
            BuildError::data(&file.path, suggest(&error.to_string()))
        })
    }

    fn policy(folder: &mut Folder<'_, '_>, policy: Policy) -> Result<String, BuildError> {
        let main = folder.of_domain("main_policy.md")?.text;
        let support = folder
            .of_domain(match policy {
                Policy::Manual => "tech_support_manual.md",
                Policy::Workflow => "tech_support_workflow.md",
            })?
            .text;
        Ok(format!(
            "<main_policy>\n{main}\n</main_policy>\n<tech_support_policy>\n{support}\n</tech_support_policy>"
        ))
    }
}
