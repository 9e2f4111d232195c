//! The configuration that a quickstart writes: complete, commented, and spelling out what it allows.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;

/// Where it listens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Addresses {
    pub(super) mqtt: SocketAddr,
    pub(super) weida: SocketAddr,
    pub(super) admin: SocketAddr,
}

/// Writes the file unless one is there; says whether it did.
pub(super) fn write_new(path: &Path, addresses: &Addresses) -> std::io::Result<bool> {
    let mut file = match std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
    {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(error),
    };
    file.write_all(text(addresses).as_bytes())?;
    file.sync_all()?;
    Ok(true)
}

fn text(Addresses { mqtt, weida, admin }: &Addresses) -> String {
    format!(
        r##"# Written by `weida-gateway quickstart`; yours to edit. The next quickstart in this folder runs it as it stands,
# and so does `weida-gateway --config THIS_FILE run`. `check` instead of `run` says what is wrong with it.

[gateway]
name = "quickstart"                # label in logs and metrics; not an identity
data_dir = "."                     # the key of this gateway lies here, beside this file
drain_timeout = "8s"               # bound of a stop: finish what is in flight, tell the clients, end

[identity]                         # the only thing weida peers see of this gateway
key_file = "identity.key"          # made with mode 0600 on the first start; whoever has it is this gateway
trust = []                         # nobody's key is listed: the grants below decide

# ---- what is served -------------------------------------------------------------------------

[[listen]]
name = "mqtt"
protocol = "mqtt"                  # MQTT 3.1.1 and 5.0
bind = "{mqtt}"
auth = ["anonymous"]               # ANYBODY who reaches this address may connect; on loopback: this machine.
                                   # For logins: ["password"], a [[credential]] and, beyond loopback, `tls`.

[[listen]]
name = "weida"
protocol = "weida"                 # QUIC, over UDP
bind = "{weida}"
require_client_identity = false    # peers need not prove a key: they are `anonymous` then

# ---- what crosses ---------------------------------------------------------------------------

[[route]]                          # MQTT topic plant/7/temp arrives at subscribers of /mqtt as topic plant.7.temp
name = "mqtt-to-weida"
from = {{ listen = "mqtt", filter = "#" }}
to = {{ weida = "/mqtt", pattern = "publish" }}
delivery = "at-most-once"          # a fan-out: whoever subscribes gets a copy, nobody acknowledges

[[route]]                          # a push to /to-mqtt with topic cmd.7.open is published as cmd/7/open;
name = "weida-to-mqtt"             # one without a topic is refused: it names nothing
from = {{ weida = "/to-mqtt", pattern = "pull" }}
to = {{ listen = "mqtt", topic = "{{topic}}", qos = 1 }}
delivery = "at-most-once"
ack_on = "sent"

# ---- who may do what: nobody may do anything that is not granted ------------------------------
# These grants let ANONYMOUS clients do everything there is here. That is meant for trying it out on
# loopback; replace them before you bind another address.

[[grant]]
who = ["anonymous"]
listen = "mqtt"
publish = ["#"]
subscribe = ["#"]

[[grant]]
who = ["anonymous", "peer:*"]
listen = "weida"
publish = ["/to-mqtt"]
subscribe = ["/mqtt"]

# ---- bounds ---------------------------------------------------------------------------------

[limits]
max_message_bytes = "1MiB"
max_connections_per_ip = 256       # does not apply to loopback

[admin]                            # /livez /readyz /metrics
bind = "{admin}"

[telemetry]
log = {{ format = "text", level = "info" }}   # quickstart shows warnings only, unless started with `--log info`
"##
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Input, load};

    fn addresses(ip: &str) -> Addresses {
        let at = |port: u16| SocketAddr::new(ip.parse().unwrap(), port);
        Addresses {
            mqtt: at(1883),
            weida: at(7443),
            admin: "127.0.0.1:0".parse().unwrap(),
        }
    }

    #[test]
    fn what_is_written_is_good_and_without_warning() {
        for ip in ["127.0.0.1", "::1", "0.0.0.0"] {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("gateway.toml");
            assert!(write_new(&file, &addresses(ip)).unwrap());
            let input = Input {
                file: file.clone(),
                ..Input::default()
            };
            let (config, report) =
                load(&input).unwrap_or_else(|it| panic!("{}", it.to_text(false)));
            assert!(report.findings().is_empty(), "{}", report.to_text(false));
            assert_eq!(config.identity.key_file, folder.path().join("identity.key"));
            assert_eq!(config.routes.len(), 2);
        }
    }

    #[test]
    fn a_file_that_is_there_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gateway.toml");
        std::fs::write(&file, "mine").unwrap();
        assert!(!write_new(&file, &addresses("127.0.0.1")).unwrap());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    }
}
