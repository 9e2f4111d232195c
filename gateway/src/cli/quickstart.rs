//! `quickstart`: a working gateway on loopback from nothing: it writes a configuration, makes a key, runs, and says what
//! to try. `[issue 2, F16]`

mod file;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::Args;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::run::{finish, runtime};
use super::{Common, FAILED, INVALID, OK, demo, terminal};
use crate::config::{Config, Input, load};
use crate::identity;
use crate::supervisor::{self, Started};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Folder for the configuration and the key; made when it is not there.
    #[arg(long, value_name = "DIR", default_value = "weida-gateway-data")]
    data_dir: PathBuf,
    /// Where MQTT clients connect; port 0 lets the system choose. Default 127.0.0.1:1883.
    #[arg(long, value_name = "ADDR")]
    mqtt: Option<SocketAddr>,
    /// Where weida peers connect. Default 127.0.0.1:7443.
    #[arg(long, value_name = "ADDR")]
    weida: Option<SocketAddr>,
    /// Health and metrics. Default 127.0.0.1:7480.
    #[arg(long, value_name = "ADDR")]
    admin: Option<SocketAddr>,
    /// Print one line of JSON instead of text.
    #[arg(long)]
    json: bool,
    /// Send a message each way first, without any other program.
    #[arg(long)]
    demo: bool,
}

/// Where a quickstart listens when nobody says so.
const fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

impl Arguments {
    fn addresses(&self) -> file::Addresses {
        file::Addresses {
            mqtt: self.mqtt.unwrap_or(loopback(1883)),
            weida: self.weida.unwrap_or(loopback(7443)),
            admin: self.admin.unwrap_or(loopback(7480)),
        }
    }
}

pub(super) fn run(common: &Common, arguments: &Arguments) -> u8 {
    let (config, path) = match prepare(arguments) {
        Ok(prepared) => prepared,
        Err(code) => return code,
    };
    // The screen belongs to what can be tried; `--log info` shows the rest.
    let mut telemetry = config.telemetry.clone();
    if !arguments.json {
        "warn".clone_into(&mut telemetry.level);
    }
    if let Err(code) = common.start_logging(&telemetry) {
        return code;
    }
    let runtime = match runtime(&config) {
        Ok(runtime) => runtime,
        Err(code) => return code,
    };
    runtime.block_on(serve(config, &path, arguments))
}

/// Writes what is missing in the folder and reads it back.
fn prepare(arguments: &Arguments) -> Result<(Config, PathBuf), u8> {
    let folder = &arguments.data_dir;
    let path = folder.join("gateway.toml");
    let io = |error: &std::io::Error| {
        terminal::fail_with(format!("{}: {error}", path.display()));
        FAILED
    };
    identity::make_folder(folder).map_err(|error| io(&error))?;
    let written = file::write_new(&path, &arguments.addresses()).map_err(|error| io(&error))?;
    let input = Input::from_process(path.clone());
    let (config, report) = load(&input).map_err(|report| {
        terminal::report(&report);
        INVALID
    })?;
    terminal::report(&report);
    if !written {
        still_there(&config, arguments, &path)?;
    }
    Ok((config, path))
}

/// A file of an earlier start is run as it stands; addresses that say something else are not dropped in silence.
fn still_there(config: &Config, arguments: &Arguments, path: &Path) -> Result<(), u8> {
    let bound = |protocol: &str| {
        config
            .listen
            .iter()
            .find(|it| it.protocol() == protocol)
            .map(crate::config::valid::Listen::bind)
    };
    let asked = [
        ("--mqtt", arguments.mqtt, bound("mqtt")),
        ("--weida", arguments.weida, bound("weida")),
        ("--admin", arguments.admin, Some(config.admin.bind)),
    ];
    for (flag, wanted, has) in asked {
        if wanted.is_some() && wanted != has {
            let has = has.map_or_else(|| "none".to_owned(), |it| it.to_string());
            terminal::fail_with(format!(
                "{} is there already and says {has}; edit it, or leave {flag} out",
                path.display()
            ));
            return Err(FAILED);
        }
    }
    Ok(())
}

async fn serve(config: Config, path: &Path, arguments: &Arguments) -> u8 {
    let stop = CancellationToken::new();
    let (tell, told) = oneshot::channel();
    let gateway = supervisor::start(config, stop.clone(), move |started: Started| {
        // The receiver lives until the gateway ends.
        let _: Result<(), Started> = tell.send(started);
    });
    let front = async {
        // An error here means that the gateway did not start; it says so itself.
        let Ok(started) = told.await else { return OK };
        let code = announce(&Places::of(&started, path), arguments).await;
        if code != OK {
            stop.cancel();
        }
        code
    };
    let (report, code) = tokio::join!(gateway, front);
    finish(&report).max(code)
}

/// Says what can be tried, after trying it itself when asked to.
async fn announce(places: &Places, arguments: &Arguments) -> u8 {
    let mut crossed = None;
    if arguments.demo {
        match demo::run(places.mqtt, &places.weida).await {
            Ok(messages) => crossed = Some(messages),
            Err(error) => return terminal::fail(&error),
        }
    }
    if arguments.json {
        let mut line = places.to_json();
        if let Some(messages) = &crossed {
            line["demo"] = messages.iter().map(demo::Crossed::to_json).collect();
        }
        return terminal::out(line);
    }
    for message in crossed.iter().flatten() {
        terminal::out(message);
    }
    terminal::out(places.to_text())
}

/// Addresses as a person or script on this machine reaches them.
struct Places {
    fingerprint: String,
    mqtt: SocketAddr,
    weida: String,
    admin: SocketAddr,
    config: PathBuf,
}

impl Places {
    fn of(started: &Started, path: &Path) -> Self {
        let bound = |protocol: &str| {
            let found = started.listeners.iter().find(|it| it.protocol == protocol);
            found.map_or(loopback(0), |it| reachable(it.address))
        };
        Self {
            fingerprint: started.fingerprint.to_string(),
            mqtt: bound("mqtt"),
            weida: format!("weida://{}@{}", started.fingerprint, bound("weida")),
            admin: reachable(started.admin),
            config: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
        }
    }

    fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "schema": 1,
            "fingerprint": self.fingerprint,
            "mqtt": self.mqtt.to_string(),
            "weida": self.weida,
            "subscribe": format!("{}/mqtt", self.weida),
            "push": format!("{}/to-mqtt", self.weida),
            "admin": format!("http://{}", self.admin),
            "config": self.config,
            "pid": std::process::id(),
        })
    }

    fn to_text(&self) -> String {
        let (host, port) = (self.mqtt.ip(), self.mqtt.port());
        let client = format!("-h {host} -p {port}");
        format!(
            "weida-gateway {version} is running; stop it with Ctrl-C

  MQTT    {mqtt}
  weida   {weida}
  health  http://{admin}/readyz
  config  {config}

A message from MQTT to weida, in two other terminals:

  weida sub '{weida}/mqtt'
  mosquitto_pub {client} -t plant/7/temp -m 21.5 -q 1

and one from weida to MQTT:

  mosquitto_sub {client} -t 'cmd/#' -v
  echo open | weida send --topic cmd.7.open '{weida}/to-mqtt'
",
            version = env!("CARGO_PKG_VERSION"),
            mqtt = self.mqtt,
            weida = self.weida,
            admin = self.admin,
            config = self.config.display(),
        )
    }
}

/// Where everything is bound, loopback reaches it.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => IpAddr::V6(std::net::Ipv6Addr::LOCALHOST),
        });
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        Places {
            fingerprint: "sha256:ab".into(),
            mqtt: loopback(1),
            weida: "weida://sha256:ab@127.0.0.1:2".into(),
            admin: loopback(3),
            config: "/x/gateway.toml".into(),
        }
    }

    #[test]
    fn the_line_for_scripts_is_one_line() {
        let line = places().to_json().to_string();
        assert!(!line.contains('\n'));
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["subscribe"], "weida://sha256:ab@127.0.0.1:2/mqtt");
        assert_eq!(value["mqtt"], "127.0.0.1:1");
    }

    #[test]
    fn people_get_commands_with_the_real_ports() {
        let text = places().to_text();
        assert!(text.contains("mosquitto_pub -h 127.0.0.1 -p 1 -t plant/7/temp"));
        assert!(text.contains("weida sub 'weida://sha256:ab@127.0.0.1:2/mqtt'"));
    }

    #[test]
    fn what_listens_everywhere_is_shown_as_loopback() {
        assert_eq!(reachable("0.0.0.0:5".parse().unwrap()), loopback(5));
        assert_eq!(
            reachable("[::]:5".parse().unwrap()),
            "[::1]:5".parse().unwrap()
        );
        assert_eq!(
            reachable("10.0.0.1:5".parse().unwrap()),
            "10.0.0.1:5".parse().unwrap()
        );
    }
}
