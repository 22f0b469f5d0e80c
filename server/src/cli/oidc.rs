//! The options of `capo serve` by which people sign in at an OpenID Connect issuer.

use std::path::PathBuf;

use capo_team::OidcSettings;
use capo_team::secret::Secret;

use super::failure::Failure;

/// An issuer, and who may come in by it.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct OidcArgs {
    /// OpenID Connect issuer at which people can sign in, too: its address as it writes it itself.
    #[arg(
        long = "oidc-issuer",
        value_name = "URL",
        env = "CAPO_OIDC_ISSUER",
        requires = "client_id",
        value_parser = address
    )]
    issuer: Option<String>,
    /// What the issuer knows this server by.
    #[arg(
        long = "oidc-client-id",
        value_name = "ID",
        env = "CAPO_OIDC_CLIENT_ID",
        requires = "issuer"
    )]
    client_id: Option<String>,
    /// File with the secret that the issuer gave this server; a public client has none.
    #[arg(
        long = "oidc-client-secret-file",
        value_name = "FILE",
        env = "CAPO_OIDC_CLIENT_SECRET_FILE",
        requires = "issuer"
    )]
    client_secret_file: Option<PathBuf>,
    /// What people call the issuer [default: its host].
    #[arg(
        long = "oidc-name",
        value_name = "NAME",
        env = "CAPO_OIDC_NAME",
        requires = "issuer"
    )]
    name: Option<String>,
    /// Domain whose e-mail addresses, verified by the issuer, make an account by themselves; several by commas.
    #[arg(
        long = "oidc-domain",
        value_name = "DOMAIN",
        env = "CAPO_OIDC_DOMAIN",
        value_delimiter = ',',
        requires = "issuer"
    )]
    domains: Vec<String>,
}

impl OidcArgs {
    /// What they say, with the secret read.
    pub(super) fn settings(self) -> Result<Option<OidcSettings>, Failure> {
        let Some((issuer, client_id)) = self.issuer.zip(self.client_id) else {
            return Ok(None);
        };
        let secret = self.client_secret_file.map(|path| {
            let wrong = |why: &str| Failure::new(format!("the client's secret {}: {why}", path.display()));
            let text = std::fs::read_to_string(&path).map_err(|error| wrong(&error.to_string()))?;
            match text.trim() {
                "" => Err(wrong("the file is empty")),
                secret => Ok(Secret::presented(secret)),
            }
        });
        let host = || {
            let (_, rest) = issuer.split_once("://").unwrap_or_default();
            rest.split('/').next().unwrap_or_default().to_owned()
        };
        Ok(Some(OidcSettings {
            client_secret: secret.transpose()?,
            name: self.name.unwrap_or_else(host),
            domains: self.domains,
            client_id,
            issuer,
        }))
    }
}

/// An address that nobody on the way can change: of https, or on this machine.
fn address(url: &str) -> Result<String, String> {
    let is_here = |here: &str| {
        let rest = url.strip_prefix(here);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']))
    };
    let here = ["http://localhost", "http://127.0.0.1", "http://[::1]"];
    if url.strip_prefix("https://").is_some_and(|host| !host.is_empty()) || here.into_iter().any(is_here) {
        Ok(url.to_owned())
    } else {
        Err("it must begin with https://, as the issuer writes it itself, such as https://accounts.example.org".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_is_asked_encrypted_or_on_this_machine() {
        for right in [
            "https://id.example.org/realms/team/",
            "http://127.0.0.1:9000",
            "http://localhost/x",
        ] {
            assert_eq!(address(right), Ok(right.to_owned()));
        }
        for wrong in [
            "http://id.example.org",
            "http://localhost.example.org",
            "id.example.org",
            "https://",
        ] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }
}
