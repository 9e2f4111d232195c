//! Who a client is: the proofs a listener accepts, tried in its order. [mqtt 9.1]
//!
//! What comes out is a [`Principal`], real for this adapter and nothing to weida. A failed proof
//! is never followed by a weaker one.

mod certificate;
mod password;
mod workspace;

use std::sync::Arc;

use weida_bridge::Principal;

pub(crate) use certificate::ClientCertificate;
pub use password::PasswordFileError;
pub(crate) use password::{PasswordFile, Passwords};

use crate::config::AuthMethod;

/// What a CONNECT and its transport offer as proof.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Login<'a> {
    pub(crate) user_name: Option<&'a str>,
    pub(crate) password: Option<&'a [u8]>,
    pub(crate) certificate: Option<&'a ClientCertificate>,
}

/// Who was accepted, with the further spellings that grants may use.
#[derive(Debug, Clone)]
pub(crate) struct Accepted {
    pub(crate) principal: Principal,
    /// `cert-subject:` spellings.
    pub(crate) also: Vec<Box<str>>,
    /// The authenticated login for `{user}`.
    pub(crate) user: Option<Box<str>>,
}

/// Why nobody was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denied {
    /// The proof is wrong or missing: 0x86.
    NotAuthenticated,
    /// Too many checks wait for a core: 0x89.
    Busy,
}

/// Tries the methods in order; the first one the client offers a proof for decides.
pub(crate) async fn authenticate(
    methods: &[AuthMethod],
    login: Login<'_>,
    passwords: Option<&Arc<Passwords>>,
) -> Result<Accepted, Denied> {
    for method in methods {
        match method {
            AuthMethod::ClientCert => {
                if let Some(certificate) = login.certificate {
                    return by_certificate(certificate, login.user_name);
                }
            }
            AuthMethod::Password => match (login.user_name, login.password) {
                (None, None) => {}
                (Some(user), Some(password)) if !user.is_empty() => {
                    let passwords = passwords.ok_or(Denied::NotAuthenticated)?;
                    passwords.verify(user, password).await?;
                    return Ok(Accepted {
                        principal: Principal::user(user),
                        also: Vec::new(),
                        user: Some(user.into()),
                    });
                }
                _ => return Err(Denied::NotAuthenticated),
            },
            AuthMethod::Anonymous => {
                return Ok(Accepted {
                    principal: Principal::anonymous(),
                    also: Vec::new(),
                    user: None,
                });
            }
        }
    }
    Err(Denied::NotAuthenticated)
}

fn by_certificate(
    certificate: &ClientCertificate,
    user_name: Option<&str>,
) -> Result<Accepted, Denied> {
    let subject = certificate.subject();
    if user_name.is_some_and(|user| !user.is_empty() && Some(user) != subject) {
        return Err(Denied::NotAuthenticated);
    }
    Ok(Accepted {
        principal: Principal::certificate(certificate.spki_sha256()),
        also: certificate.spellings(),
        user: subject.map(Into::into),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login<'a>(user_name: Option<&'a str>, password: Option<&'a [u8]>) -> Login<'a> {
        Login {
            user_name,
            password,
            certificate: None,
        }
    }

    /// A wrong password never falls back to anonymous. [mqtt 9.1]
    #[tokio::test]
    async fn mqtt_9_1_a_failed_login_is_not_anonymous() {
        let methods = [AuthMethod::Password, AuthMethod::Anonymous];
        let accepted = authenticate(&methods, login(None, None), None)
            .await
            .unwrap();
        assert!(accepted.principal.is_anonymous());
        for wrong in [
            login(Some("a"), Some(b"x")),
            login(Some("a"), None),
            login(None, Some(b"x")),
        ] {
            let denied = authenticate(&methods, wrong, None).await.unwrap_err();
            assert_eq!(denied, Denied::NotAuthenticated);
        }
    }

    #[tokio::test]
    async fn nobody_without_a_method() {
        let denied = authenticate(&[], login(None, None), None)
            .await
            .unwrap_err();
        assert_eq!(denied, Denied::NotAuthenticated);
        let certificate_only = [AuthMethod::ClientCert];
        assert!(
            authenticate(&certificate_only, login(None, None), None)
                .await
                .is_err()
        );
    }
}
