//! The key under which foreign session state is kept.

use std::fmt;
use std::sync::Arc;

use crate::envelope::Principal;

/// What a foreign session is known by: never the foreign id alone.
///
/// Two strangers with one foreign id meet only if they proved the same principal at the same listener, so a claim
/// cannot take over what somebody else proved.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey {
    /// The configured listener, or the group of listeners that share sessions; each belongs to one adapter.
    pub listener: Arc<str>,
    /// Who the adapter's authentication accepted.
    pub principal: Principal,
    /// What the foreign side calls itself: a claim.
    pub foreign_id: Arc<str>,
}

impl SessionKey {
    /// Puts the three together.
    #[must_use]
    pub fn new(
        listener: impl Into<Arc<str>>,
        principal: Principal,
        foreign_id: impl Into<Arc<str>>,
    ) -> Self {
        Self {
            listener: listener.into(),
            principal,
            foreign_id: foreign_id.into(),
        }
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "SessionKey({}, {}, claimed {:?})",
            self.listener, self.principal, self.foreign_id
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_foreign_id_of_two_principals_is_two_sessions() {
        let ann = SessionKey::new("edge", Principal::user("ann"), "sensor-7");
        let bob = SessionKey::new("edge", Principal::user("bob"), "sensor-7");
        let elsewhere = SessionKey::new("lab", Principal::user("ann"), "sensor-7");
        assert_ne!(ann, bob);
        assert_ne!(ann, elsewhere);
        assert_eq!(
            ann,
            SessionKey::new("edge", Principal::user("ann"), "sensor-7")
        );
    }

    #[test]
    fn debug_quotes_the_claim() {
        let key = SessionKey::new("edge", Principal::anonymous(), "x\n");
        assert_eq!(
            format!("{key:?}"),
            r#"SessionKey(edge, anonymous, claimed "x\n")"#
        );
    }
}
