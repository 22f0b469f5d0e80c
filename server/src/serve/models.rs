//! The models that a team server has itself, behind one endpoint: the simulated ones, and rewriters that were trained here.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use capo_api::REWRITER;
use capo_team::trainings::Policies;
use capo_world::simulated::parameters::MODELS;
use futures::FutureExt as _;

use super::ServeError;
use crate::simulate::{self, Fetch, Served, simulated};

/// A trained rewriter, and the name under which it is served.
#[derive(Debug, Clone)]
pub(crate) struct NamedRewriter {
    pub(crate) name: String,
    /// Folder of a training, a checkpoint, an adapter or a model.
    pub(crate) folder: String,
}

impl std::str::FromStr for NamedRewriter {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some((name, folder)) if !name.is_empty() && !folder.is_empty() => Ok(Self {
                name: name.to_owned(),
                folder: folder.to_owned(),
            }),
            _ => Err("it must be a name and the folder of a rewriter, such as desk=runs/desk.grpo"),
        }
    }
}

/// Their routes, and those of the rewriters that trainings come to while it serves.
///
/// # Errors
/// When two have one name, or a rewriter cannot be opened.
pub(super) async fn routes(
    rewriters: Vec<NamedRewriter>,
    policies: Option<Policies>,
) -> Result<Router, ServeError> {
    let mut names: Vec<String> = MODELS.iter().map(|model| model.name.to_owned()).collect();
    for rewriter in &rewriters {
        if names.contains(&rewriter.name) {
            return Err(ServeError::TwiceNamed(rewriter.name.clone()));
        }
        names.push(rewriter.name.clone());
    }
    let open = move |name: &str| match rewriters.iter().find(|rewriter| rewriter.name == name) {
        Some(rewriter) => opened(&rewriter.name, Path::new(""), &rewriter.folder),
        None => simulated(name, 0).map_err(|error| error.to_string()),
    };
    let trained = policies.map(|policies| {
        let places: Arc<Mutex<HashMap<String, PathBuf>>> = Arc::default();
        let known = Arc::clone(&places);
        let fetch: Fetch = Box::new(move |name: &str| {
            let (policies, places, name) = (policies.clone(), Arc::clone(&places), name.to_owned());
            let fetched = async move {
                let id = name.strip_prefix(REWRITER).unwrap_or(&name);
                let place = policies.policy(id, None).await?;
                let mut places = places.lock().unwrap_or_else(PoisonError::into_inner);
                places.insert(name, place);
                Ok::<_, String>(())
            };
            fetched.boxed()
        });
        let open = move |name: &str| {
            let places = known.lock().unwrap_or_else(PoisonError::into_inner);
            let place = places.get(name).cloned();
            drop(places);
            opened(name, &place.ok_or("nobody has fetched it")?, "")
        };
        (fetch, open)
    });
    Ok(simulate::routes(names, open, trained).await?)
}

/// The rewriter of a folder whose path starts at another one, under a name.
#[cfg(feature = "train")]
fn opened(name: &str, start: &Path, folder: &str) -> Result<Rc<dyn Served>, String> {
    use capo_rewriter::folder::PolicyFolder;
    use capo_rewriter::local::Drawing;

    use crate::train::served::served;
    use crate::train::{Device, TrainError};

    let open = || {
        let folder = PolicyFolder::find_from(start, folder)?;
        served(&Device::of_environment()?, name, &folder, Drawing::default())
    };
    open().map_err(|error: TrainError| error.to_string())
}

#[cfg(not(feature = "train"))]
fn opened(_: &str, start: &Path, folder: &str) -> Result<Rc<dyn Served>, String> {
    Err(format!(
        "the rewriter in {} needs a `capo` that was built with the feature `train`",
        start.join(folder).display()
    ))
}
