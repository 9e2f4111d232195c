//! What one authenticated client may do: the grant that decides, expanded for its connection.
//! [mqtt 9.2]
//!
//! Default deny. The first grant whose `who` and `listen` match decides alone; nothing is added
//! from a later one.

use crate::auth::Accepted;
use crate::codec::{TopicFilter, TopicName};
use crate::config::{Grant, GrantFilter, PublishRate, Values};

/// The rights of one connection.
#[derive(Debug, Default)]
pub(crate) struct Access {
    publish: Vec<TopicFilter>,
    deny_publish: Vec<TopicFilter>,
    subscribe: Vec<TopicFilter>,
    deny_subscribe: Vec<TopicFilter>,
    will: Option<Vec<TopicFilter>>,
    rate: Option<PublishRate>,
}

/// Why a CONNECT may not become a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoAccess {
    /// No grant speaks about this principal here: 0x87.
    NoGrant,
    /// The grant does not allow this ClientID: 0x85.
    ClientId,
}

/// What a requested filter may become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SubscribeVerdict {
    /// Every copy is allowed.
    Granted,
    /// Allowed, but copies that a deny filter selects are withheld.
    Filtered,
    /// Not granted: 0x87.
    Refused,
}

impl Access {
    /// Finds the deciding grant and expands it.
    pub(crate) fn decide(
        grants: &[Grant],
        listener: &str,
        tenant: Option<&str>,
        accepted: &Accepted,
        client_id: &str,
    ) -> Result<Self, NoAccess> {
        let grant = deciding(grants, listener, accepted).ok_or(NoAccess::NoGrant)?;
        let user = accepted.user.as_deref();
        let values = Values {
            user,
            client_id: Some(client_id),
            tenant,
        };
        if let Some(globs) = &grant.client_id {
            // The ClientID is what is judged here, so it does not vouch for itself.
            let judged = Values {
                client_id: None,
                ..values
            };
            if !globs.iter().any(|glob| glob.matches(client_id, &judged)) {
                return Err(NoAccess::ClientId);
            }
        }
        let all = |filters: &[GrantFilter]| -> Vec<TopicFilter> {
            filters
                .iter()
                .filter_map(|filter| filter.expand(&values))
                .collect()
        };
        Ok(Self {
            publish: all(&grant.publish),
            deny_publish: all(&grant.deny_publish),
            subscribe: all(&grant.subscribe),
            deny_subscribe: all(&grant.deny_subscribe),
            will: grant.will.as_deref().map(all),
            rate: grant.rate,
        })
    }

    pub(crate) fn may_publish(&self, topic: &TopicName) -> bool {
        any(&self.publish, topic) && !any(&self.deny_publish, topic)
    }

    pub(crate) fn may_will(&self, topic: &TopicName) -> bool {
        let allow = self.will.as_ref().unwrap_or(&self.publish);
        any(allow, topic) && !any(&self.deny_publish, topic)
    }

    /// Judges a requested filter by containment; `$share/g/f` is judged as `f`.
    pub(crate) fn subscribe(&self, filter: &TopicFilter) -> SubscribeVerdict {
        let allowed = self.subscribe.iter().any(|allow| allow.contains(filter));
        let denied = self.deny_subscribe.iter().any(|deny| deny.contains(filter));
        if !allowed || denied {
            return SubscribeVerdict::Refused;
        }
        let touched = |deny: &TopicFilter| intersects(deny.pattern(), filter.pattern());
        if self.deny_subscribe.iter().any(touched) {
            SubscribeVerdict::Filtered
        } else {
            SubscribeVerdict::Granted
        }
    }

    /// Whether a copy of a [`SubscribeVerdict::Filtered`] subscription may be delivered.
    pub(crate) fn may_receive(&self, topic: &TopicName) -> bool {
        !any(&self.deny_subscribe, topic)
    }

    pub(crate) fn rate(&self) -> Option<PublishRate> {
        self.rate
    }
}

fn deciding<'a>(grants: &'a [Grant], listener: &str, accepted: &Accepted) -> Option<&'a Grant> {
    let principal = accepted.principal.as_str();
    grants.iter().find(|grant| {
        let here = grant
            .listen
            .as_deref()
            .is_none_or(|listen| listen == listener);
        let meant = |spelling: &str| grant.who.iter().any(|who| who.matches(spelling));
        here && (meant(principal) || accepted.also.iter().any(|spelling| meant(spelling)))
    })
}

fn any(filters: &[TopicFilter], topic: &TopicName) -> bool {
    filters.iter().any(|filter| filter.matches(topic))
}

/// Whether some topic is selected by both patterns.
fn intersects(a: &[u8], b: &[u8]) -> bool {
    let dollar = |pattern: &[u8]| pattern.first() == Some(&b'$');
    let wild = |pattern: &[u8]| matches!(pattern.first(), Some(b'+' | b'#'));
    if (dollar(a) && wild(b)) || (dollar(b) && wild(a)) {
        return false;
    }
    let mut left = a.split(|byte| *byte == b'/');
    let mut right = b.split(|byte| *byte == b'/');
    loop {
        match (left.next(), right.next()) {
            (Some(b"#"), _) | (_, Some(b"#")) => return true,
            (Some(b"+"), Some(_)) | (Some(_), Some(b"+")) => {}
            (Some(x), Some(y)) if x == y => {}
            (None, None) => return true,
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Glob, Who};
    use weida_bridge::Principal;

    fn filters(texts: &[&str]) -> Vec<GrantFilter> {
        texts
            .iter()
            .map(|text| GrantFilter::parse(text).unwrap())
            .collect()
    }

    fn ann() -> Accepted {
        Accepted {
            principal: Principal::user("ann"),
            also: Vec::new(),
            user: Some("ann".into()),
        }
    }

    fn grant(who: &str) -> Grant {
        Grant {
            who: vec![Who::new(who)],
            ..Grant::default()
        }
    }

    fn topic(text: &str) -> TopicName {
        TopicName::parse(text).unwrap()
    }

    fn filter(text: &str) -> TopicFilter {
        TopicFilter::parse(text).unwrap()
    }

    fn decide(grants: &[Grant]) -> Result<Access, NoAccess> {
        Access::decide(grants, "mqtt", None, &ann(), "c1")
    }

    #[test]
    fn mqtt_9_2_an_empty_grant_table_denies_everything() {
        assert_eq!(decide(&[]).unwrap_err(), NoAccess::NoGrant);
        let elsewhere = Grant {
            listen: Some("other".into()),
            ..grant("user:ann")
        };
        assert_eq!(decide(&[elsewhere]).unwrap_err(), NoAccess::NoGrant);
    }

    #[test]
    fn mqtt_9_2_the_first_matching_grant_decides_alone() {
        let narrow = Grant {
            publish: filters(&["a/{user}/#"]),
            ..grant("user:an*")
        };
        let wide = Grant {
            publish: filters(&["#"]),
            ..grant("user:ann")
        };
        let access = decide(&[narrow, wide]).unwrap();
        assert!(access.may_publish(&topic("a/ann/x")));
        assert!(!access.may_publish(&topic("a/bob/x")));
        assert!(!access.may_publish(&topic("b")));
    }

    #[test]
    fn mqtt_9_2_deny_wins_and_touching_deny_filters_copies() {
        let grant = Grant {
            publish: filters(&["s/#"]),
            deny_publish: filters(&["s/+/calibration/#"]),
            subscribe: filters(&["s/#"]),
            deny_subscribe: filters(&["s/secret/#"]),
            ..grant("user:ann")
        };
        let access = decide(&[grant]).unwrap();
        assert!(access.may_publish(&topic("s/1/x")));
        assert!(!access.may_publish(&topic("s/1/calibration")));
        assert_eq!(
            access.subscribe(&filter("s/1/#")),
            SubscribeVerdict::Granted
        );
        assert_eq!(
            access.subscribe(&filter("s/secret/#")),
            SubscribeVerdict::Refused
        );
        assert_eq!(
            access.subscribe(&filter("s/secret/x")),
            SubscribeVerdict::Refused
        );
        assert_eq!(access.subscribe(&filter("s/#")), SubscribeVerdict::Filtered);
        assert_eq!(access.subscribe(&filter("#")), SubscribeVerdict::Refused);
        assert_eq!(
            access.subscribe(&filter("$share/g/s/1")),
            SubscribeVerdict::Granted
        );
        assert!(!access.may_receive(&topic("s/secret/x")));
        assert!(access.may_receive(&topic("s/1/x")));
    }

    #[test]
    fn mqtt_9_4_client_id_globs_bind_the_id_to_the_login() {
        let own = vec![Glob::new("{user}"), Glob::new("{user}-*")];
        let grants = [Grant {
            client_id: Some(own),
            ..grant("user:ann")
        }];
        let decide = |id: &str| Access::decide(&grants, "mqtt", None, &ann(), id);
        assert!(decide("ann").is_ok());
        assert!(decide("ann-7").is_ok());
        assert_eq!(decide("bob").unwrap_err(), NoAccess::ClientId);
        assert_eq!(decide("annx").unwrap_err(), NoAccess::ClientId);
    }

    #[test]
    fn intersections() {
        assert!(intersects(b"a/#", b"a/b"));
        assert!(intersects(b"a/+/c", b"a/b/#"));
        assert!(!intersects(b"a/b", b"a/c"));
        assert!(!intersects(b"#", b"$SYS/x"));
    }
}
