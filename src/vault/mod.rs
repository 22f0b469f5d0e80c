//! Keys remembered on this device: encrypted with a passphrase that is kept nowhere.

mod cipher;
mod content;
mod sealed;

use crate::keys::Keys;
use crate::storage::{Storage, StorageError};

use self::cipher::{open, seal};
pub use self::content::Content;
use self::sealed::Sealed;

/// The name they are kept under.
const NAME: &str = "keys";

/// Why keys cannot be remembered or recalled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    /// Another passphrase was used, or what is kept was changed.
    #[error("This is not the passphrase the keys were kept with. Nothing was changed; try again.")]
    WrongPassphrase,
    /// Nothing that this page wrote.
    #[error("The keys kept here cannot be read. Forget them and type the keys again.")]
    Unreadable,
    /// The browser offers no encryption, as on pages that are not served over HTTPS or from this machine.
    #[error("This browser encrypts nothing for this page ({0}). The keys stay in this tab only.")]
    NoEncryption(String),
    /// The browser keeps nothing.
    #[error("This browser would not keep the keys ({0}). They stay in this tab only.")]
    Storage(#[from] StorageError),
}

/// Whether keys are remembered here.
///
/// # Errors
/// When the browser does not say.
pub async fn is_kept() -> Result<bool, VaultError> {
    Ok(Storage::open().await?.in_vault(NAME).await?.is_some())
}

/// Remembers keys, encrypted with `passphrase`, in place of what was remembered.
///
/// # Errors
/// When the browser does not encrypt or keep them; what was remembered is kept then.
pub async fn remember(keys: &Keys, passphrase: &str) -> Result<(), VaultError> {
    let sealed = seal(&content::write(keys), passphrase).await?;
    let text = sealed.to_text();
    Ok(Storage::open().await?.put_in_vault(NAME, &text).await?)
}

/// The keys remembered here, none if there are none, and the variables of those that an older page
/// kept without the server they are for.
///
/// # Errors
/// When the passphrase is another one, or what is kept cannot be read.
pub async fn recall(passphrase: &str) -> Result<Content, VaultError> {
    let Some(text) = Storage::open().await?.in_vault(NAME).await? else {
        return Ok(Content::default());
    };
    let sealed = Sealed::of_text(&text).ok_or(VaultError::Unreadable)?;
    let plain = open(&sealed, passphrase).await?;
    content::read(&plain).ok_or(VaultError::Unreadable)
}

/// Forgets the keys remembered here.
///
/// # Errors
/// When the browser refuses.
pub async fn forget() -> Result<(), VaultError> {
    Ok(Storage::open().await?.forget_in_vault(NAME).await?)
}
