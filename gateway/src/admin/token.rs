//! The bearer token in front of a page.

use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use crate::config::valid::Secret;

/// The SHA-256 of the token that is let in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token([u8; 32]);

impl Token {
    /// From the configured secret: 64 hex digits are a digest, anything else is the token itself.
    pub(super) fn new(secret: &Secret) -> Self {
        Self(digest_of(secret.reveal()).unwrap_or_else(|| Sha256::digest(secret.reveal()).into()))
    }

    /// Asks for the token on every page of `router`.
    pub(super) fn guard<S>(self, router: Router<S>) -> Router<S>
    where
        S: Clone + Send + Sync + 'static,
    {
        router.layer(from_fn(move |request: Request, next: Next| async move {
            if self.is_in(&request) {
                next.run(request).await
            } else {
                refused()
            }
        }))
    }

    fn is_in(self, request: &Request) -> bool {
        let presented = request
            .headers()
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer "));
        presented.is_some_and(|token| self.is(token))
    }

    /// Compares digests, so the time taken tells nothing about the token.
    fn is(self, token: &str) -> bool {
        let presented: [u8; 32] = Sha256::digest(token).into();
        presented
            .iter()
            .zip(self.0)
            .fold(0, |sum, (a, b)| sum | (a ^ b))
            == 0
    }
}

fn digest_of(text: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, at) in digest.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(digest)
}

fn refused() -> Response {
    (
        StatusCode::UNAUTHORIZED,
        [
            (header::WWW_AUTHENTICATE, "Bearer"),
            (header::CONTENT_TYPE, "application/problem+json"),
        ],
        r#"{"title":"token required","status":401,"code":"unauthorized"}"#,
    )
        .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateway_4_a_token_or_its_digest_lets_in() {
        let digest = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"; // "secret"
        for secret in ["secret", digest] {
            let token = Token::new(&Secret::new(secret.into()));
            assert!(token.is("secret"));
            assert!(!token.is("Secret"));
            assert!(!token.is(""));
        }
        assert!(
            !Token::new(&Secret::new(digest.into())).is(digest),
            "the digest is no token"
        );
    }
}
