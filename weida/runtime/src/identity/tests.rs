//! Identities, their sources, and what never leaves them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use super::*;
use crate::tls::{ClientTls, ServerTls};
use crate::trust::{Trust, TrustSource};

fn write(dir: &Path, identity: &Identity) {
    fs::write(dir.join("cert.pem"), identity.certificate_pem().unwrap()).unwrap();
    fs::write(dir.join("key.pem"), identity.to_pem().unwrap()).unwrap();
    touch(dir);
}

/// Moves both modification times on, whatever the file system's resolution.
fn touch(dir: &Path) {
    for name in ["cert.pem", "key.pem"] {
        let file = fs::File::options()
            .append(true)
            .open(dir.join(name))
            .unwrap();
        let now = file.metadata().unwrap().modified().unwrap();
        file.set_modified(now + Duration::from_secs(5)).unwrap();
    }
}

fn watched(dir: &Path) -> IdentitySource {
    IdentitySource::files(dir, FilesOptions::default()).unwrap()
}

#[test]
fn id_1_pem_round_trips_keep_the_fingerprint() {
    let identity = Identity::generate_for(["localhost", "127.0.0.1"]).unwrap();
    let fingerprint = identity.fingerprint().unwrap();
    let pem = identity.to_pem().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (both, cert) = (dir.path().join("both.pem"), dir.path().join("cert.pem"));
    fs::write(&both, &pem).unwrap();
    fs::write(&cert, identity.certificate_pem().unwrap()).unwrap();
    for same in [
        Identity::from_pem(pem.clone(), pem.clone()),
        Identity::from_pem_file(&both),
        Identity::from_pem_files(&cert, &both),
    ] {
        assert_eq!(same.load().unwrap().fingerprint, fingerprint);
        assert_eq!(same.to_pem().unwrap(), pem);
    }
    assert!(!identity.certificate_pem().unwrap().contains("PRIVATE"));
}

#[test]
fn material_that_does_not_fit_together_is_refused() {
    let (alice, bob) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    assert!(IdentitySource::from_identity(alice.clone()).is_ok());
    let alice_pem = alice.to_pem().unwrap();
    for bad in [
        Identity::from_pem(alice_pem.clone(), bob.to_pem().unwrap()),
        Identity::from_pem(alice_pem.clone(), alice.certificate_pem().unwrap()),
        Identity::from_pem("", alice_pem),
        Identity::from_pem_file("/nonexistent/identity.pem"),
    ] {
        assert!(matches!(bad.load(), Err(Error::Tls(_))), "{bad:?}");
        assert!(matches!(IdentitySource::external(bad), Err(Error::Tls(_))));
    }
}

#[test]
fn id_12_key_material_is_in_no_debug_and_no_error_text() {
    let identity = Identity::generate().unwrap();
    let pem = identity.to_pem().unwrap();
    let secret = pem.lines().rev().nth(1).unwrap();
    assert!(pem.contains(secret) && secret.len() > 20);
    let source = IdentitySource::external(identity.clone()).unwrap();
    let material = source.material().unwrap();
    let shown = [
        format!("{identity:?}"),
        format!("{source:?}"),
        format!("{material:?}"),
        format!("{:?}", ServerTls::new(source.clone())),
        format!(
            "{:?}",
            ClientTls::new(Trust::by_address()).with_identity(source)
        ),
        format!(
            "{:?}",
            Identity::from_pem(secret, secret).load().unwrap_err()
        ),
        format!(
            "{:?}",
            Identity::from_pem(pem.clone(), secret).load().unwrap_err()
        ),
        // A key whose DER is cut.
        format!(
            "{:?}",
            Identity::from_pem(pem.clone(), pem.replace(secret, "")).load()
        ),
    ];
    for text in shown {
        assert!(
            !text.contains(secret) && !text.contains("PRIVATE"),
            "{text}"
        );
        // As a list of byte values, too.
        assert!(
            !text.contains(&format!("{:?}", secret.as_bytes())[1..20]),
            "{text}"
        );
    }
}

#[test]
fn pool_keys_compare_fixed_sources_by_content_and_others_by_identity() {
    let identity = Identity::generate().unwrap();
    let fixed = |identity: &Identity| IdentitySource::from(identity.clone());
    assert_eq!(fixed(&identity), fixed(&identity));
    assert_ne!(fixed(&identity), fixed(&Identity::generate().unwrap()));
    let external = IdentitySource::external(identity.clone()).unwrap();
    assert_eq!(external, external.clone());
    assert_ne!(
        external,
        IdentitySource::external(identity.clone()).unwrap()
    );
    assert_ne!(external, fixed(&identity));

    let trust = Trust::pin(identity.fingerprint().unwrap());
    assert_eq!(TrustSource::from(trust.clone()), trust.clone().into());
    let external = TrustSource::external(trust.clone());
    assert_eq!(external, external.clone());
    assert_ne!(external, TrustSource::external(trust.clone()));
    // Different terms are different peers, even to the same key. [weida S8-8]
    let anonymous = ClientTls::from(trust.clone());
    assert_eq!(anonymous, ClientTls::from(trust.clone()));
    assert_ne!(anonymous, ClientTls::from(trust).with_identity(identity));
}

#[test]
fn weak_handles_end_with_the_last_strong_one() {
    let identity = IdentitySource::ephemeral(["localhost"]).unwrap();
    let trust = TrustSource::external(Trust::by_address());
    let (weak_identity, weak_trust) = (identity.downgrade(), trust.downgrade());
    assert!(weak_identity.upgrade().is_some() && weak_trust.upgrade().is_some());
    drop((identity, trust));
    assert!(weak_identity.upgrade().is_none() && weak_trust.upgrade().is_none());
}

#[tokio::test]
async fn sources_tell_what_happens_to_them() {
    let identity = IdentitySource::external(Identity::generate().unwrap()).unwrap();
    let mut events = identity.events();
    let served = identity.fingerprint().unwrap();
    let garbage = Identity::from_pem("no", "no");
    assert!(matches!(identity.update(garbage), Err(Error::Tls(_))));
    assert!(matches!(
        events.recv().await,
        Some(IdentityEvent::RenewalFailed(_))
    ));
    assert_eq!(identity.fingerprint().unwrap(), served);
    identity.report_handoff_stolen();
    assert_eq!(events.recv().await, Some(IdentityEvent::HandoffStolen));
    for _ in 0..65 {
        identity.report_failure("again");
    }
    assert_eq!(events.recv().await, Some(IdentityEvent::Missed(1)));
    drop(identity);
    while let Some(event) = events.recv().await {
        assert_eq!(event, IdentityEvent::RenewalFailed("again".into()));
    }

    let trust = TrustSource::external(Trust::by_address());
    let mut events = trust.events();
    trust.update(Trust::pin(served));
    assert_eq!(events.recv().await, Some(IdentityEvent::TrustRefreshed));
    assert!(!trust.is_empty());

    let fixed = TrustSource::from_trust(Trust::by_address());
    let mut events = fixed.events();
    fixed.update(Trust::pin(served));
    assert!(matches!(
        events.recv().await,
        Some(IdentityEvent::RenewalFailed(_))
    ));
    assert!(fixed.is_empty());
    let fixed = IdentitySource::ephemeral(["a"]).unwrap();
    assert!(fixed.update(Identity::generate().unwrap()).is_err());
}

#[test]
fn an_empty_directory_is_given_an_identity_that_stays() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("deep/identity");
    let first = watched(&dir).fingerprint().unwrap();
    assert_eq!(watched(&dir).fingerprint().unwrap(), first);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    assert_eq!(mode(&dir.join("cert.pem")), 0o600);
    assert_eq!(mode(&dir.join("key.pem")), 0o600);

    fs::remove_file(dir.join("cert.pem")).unwrap();
    let half = IdentitySource::files(&dir, FilesOptions::default());
    assert!(matches!(half, Err(Error::Tls(_))));
}

#[tokio::test(start_paused = true)]
async fn a_directory_is_looked_at_on_use_and_once_per_interval() {
    let dir = tempfile::tempdir().unwrap();
    let (alice, bob) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let (from, to) = (alice.fingerprint().unwrap(), bob.fingerprint().unwrap());
    write(dir.path(), &alice);
    let source = watched(dir.path());
    let mut events = source.events();
    write(dir.path(), &bob);
    tokio::time::advance(Duration::from_millis(9_999)).await;
    assert_eq!(source.fingerprint().unwrap(), from);
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(source.fingerprint().unwrap(), to);
    assert_eq!(source.current().fingerprint().unwrap(), to);
    assert_eq!(
        events.recv().await,
        Some(IdentityEvent::KeyChanged { from, to })
    );

    // `reload` does not wait for the interval.
    assert!(!source.reload().unwrap());
    touch(dir.path());
    assert!(source.reload().unwrap());
    assert_eq!(
        events.recv().await,
        Some(IdentityEvent::Loaded { fingerprint: to })
    );
}

#[tokio::test(start_paused = true)]
async fn a_change_that_does_not_load_leaves_the_identity_in_service() {
    let dir = tempfile::tempdir().unwrap();
    let (alice, bob) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    write(dir.path(), &alice);
    let source = watched(dir.path());
    let mut events = source.events();
    // The certificate came, its key has not yet.
    fs::write(dir.path().join("cert.pem"), bob.certificate_pem().unwrap()).unwrap();
    touch(dir.path());
    for _ in 0..3 {
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(source.fingerprint().unwrap(), alice.fingerprint().unwrap());
    }
    assert!(matches!(source.reload(), Err(Error::Tls(_))));
    write(dir.path(), &bob);
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(source.fingerprint().unwrap(), bob.fingerprint().unwrap());
    // One broken renewal is one event.
    assert!(matches!(
        events.recv().await,
        Some(IdentityEvent::RenewalFailed(_))
    ));
    assert!(matches!(
        events.recv().await,
        Some(IdentityEvent::KeyChanged { .. })
    ));
}

#[test]
fn generated_certificates_last_from_1975_to_4096() {
    let identity = Identity::generate().unwrap();
    let chain = identity.load_chain().unwrap();
    let parsed = webpki::EndEntityCert::try_from(&chain[0]).unwrap();
    assert_eq!(parsed.valid_dns_names().count(), 0);
    let der = &chain[0];
    let contains = |needle: &[u8]| der.windows(needle.len()).any(|window| window == needle);
    assert!(contains(b"750101000000Z"));
    assert!(contains(b"40960101000000Z"));
}
