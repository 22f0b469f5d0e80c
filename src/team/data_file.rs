//! The files of data sets on their way to this browser.

use capo_api::{Answer, ClientError, DataSetShown, data_set_path};
use gloo_net::http::RequestBuilder;
use js_sys::{Array, Uint8Array};
use web_sys::{File, RequestCredentials};

/// The file of a project's data set, as if it had been chosen here.
///
/// # Errors
/// As all that is asked of the server.
pub async fn data_file(project: &str, set: &DataSetShown) -> Result<File, ClientError> {
    let request =
        RequestBuilder::new(&data_set_path(project, &set.id)).credentials(RequestCredentials::SameOrigin);
    // Browsers do not tell pages more than whether one came.
    let unreached = |_| ClientError::Unreached("no answer came".into());
    let response = request.send().await.map_err(unreached)?;
    if !response.ok() {
        let (status, body) = (response.status(), response.text().await.map_err(unreached)?);
        return Err(Answer { status, body }.refusal());
    }
    let bytes = response.binary().await.map_err(unreached)?;
    let parts = Array::of1(&Uint8Array::from(bytes.as_slice()));
    File::new_with_u8_array_sequence(&parts, &set.name).map_err(|_| {
        ClientError::Unreached("this browser makes no file of it; its memory may be short".into())
    })
}
