use super::*;

const SOON: Duration = Duration::from_secs(10);

fn shell(script: &str) -> ProcessBuilder {
    Process::builder("/bin/sh").args(["-c", script])
}

#[tokio::test]
async fn a_process_is_ready_when_its_line_came() {
    let process = shell("echo starting; echo up on 7 >&2; exec sleep 60")
        .ready(Ready::Line("up on".into()))
        .spawn()
        .await
        .unwrap();
    assert_eq!(process.stderr(), ["up on 7"]);
    assert_eq!(process.line("starting", SOON).await.unwrap(), "starting");
    assert_eq!(process.stdout(), ["starting"]);
}

#[tokio::test]
async fn dropping_a_process_leaves_no_pid() {
    let process = shell("echo ready; exec sleep 60")
        .ready(Ready::Line("ready".into()))
        .spawn()
        .await
        .unwrap();
    let (pid, dir) = (process.pid(), process.dir().to_owned());
    assert!(Path::new(&format!("/proc/{pid}")).exists() && dir.is_dir());
    drop(process);
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
    assert!(!dir.exists());
}

#[tokio::test]
async fn a_process_that_ignores_sigterm_is_killed() {
    let process = shell("trap '' TERM; echo ready; while :; do sleep 0.05; done")
        .ready(Ready::Line("ready".into()))
        .grace(Duration::from_millis(200))
        .spawn()
        .await
        .unwrap();
    let (pid, transcript) = (process.pid(), process.transcript().clone());
    let begun = Instant::now();
    drop(process);
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
    assert!(
        begun.elapsed() >= Duration::from_millis(150),
        "it had its grace"
    );
    assert!(transcript.find(|entry| entry.frame == "SIGTERM").is_some());
}

#[tokio::test]
async fn stop_gives_a_polite_process_its_own_exit_code() {
    let mut process =
        shell("trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.05; done")
            .ready(Ready::Line("ready".into()))
            .spawn()
            .await
            .unwrap();
    let status = process.stop(SOON).await.unwrap();
    assert_eq!(status.code(), Some(7));
    assert_eq!(process.stdout(), ["ready", "bye"]);
    assert!(process.signal(Signal::Term).is_err());
}

#[tokio::test]
async fn an_early_end_is_an_error_with_what_was_printed() {
    let failed = shell("echo cannot bind >&2; exit 3")
        .ready(Ready::Line("up".into()))
        .spawn()
        .await;
    let text = failed.unwrap_err().to_string();
    assert!(
        text.contains("ended before it was ready") && text.contains("cannot bind"),
        "{text}"
    );
}

#[tokio::test]
async fn a_process_that_never_becomes_ready_is_an_error_and_gone() {
    let failed = shell("echo $$; exec sleep 60")
        .ready(Ready::Check(Box::new(|_| false)))
        .ready_within(Duration::from_millis(300))
        .spawn()
        .await;
    let SpawnError::NotReady { transcript, .. } = failed.unwrap_err() else {
        panic!("not ready was expected")
    };
    let pid = transcript
        .lines()
        .find_map(|line| line.trim().rsplit(' ').next()?.parse::<u32>().ok())
        .unwrap();
    assert!(is_gone(pid, Duration::ZERO).await);
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let failed = Process::builder("/no/such/program")
        .spawn()
        .await
        .unwrap_err();
    assert_eq!(failed.to_string(), "program cannot be started");
}

#[tokio::test]
async fn ready_on_a_port_waits_for_the_listener() {
    let port = crate::FreePort::take().unwrap();
    let addr = port.addr().unwrap();
    // Connects succeed as soon as somebody listens; here that is the held port itself.
    let process = shell("exec sleep 60")
        .ready(Ready::Port(addr))
        .spawn()
        .await
        .unwrap();
    drop(process);
    let closed = port.release().unwrap();
    let failed = shell("exec sleep 60")
        .ready(Ready::Port(closed))
        .ready_within(Duration::from_millis(200))
        .spawn()
        .await;
    assert!(matches!(failed, Err(SpawnError::NotReady { .. })));
}

#[tokio::test]
async fn stdin_environment_and_directory_reach_the_process() {
    let mut process = shell("pwd; echo $COLOUR; cat; echo end")
        .env("COLOUR", "blue")
        .spawn()
        .await
        .unwrap();
    process.write_stdin(b"through\n").unwrap();
    process.close_stdin();
    assert!(process.wait(SOON).await.unwrap().unwrap().success());
    let dir = std::fs::canonicalize(process.dir()).unwrap();
    assert_eq!(
        process.stdout(),
        [dir.to_str().unwrap(), "blue", "through", "end"]
    );
    assert!(process.write_stdin(b"x").is_err());
}

#[tokio::test]
async fn freezing_and_thawing_by_signal() {
    let mut process = shell("echo ready; exec sleep 60")
        .ready(Ready::Line("ready".into()))
        .spawn()
        .await
        .unwrap();
    let state = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit(')')
            .next()
            .unwrap()
            .trim()
            .chars()
            .next()
            .unwrap()
    };
    let pid = process.pid();
    process.signal(Signal::Stop).unwrap();
    assert!(eventually(|| state(pid) == 'T', SOON).await);
    process.signal(Signal::Cont).unwrap();
    assert!(eventually(|| state(pid) != 'T', SOON).await);
    assert!(process.resident_bytes().unwrap() > 0);
    assert!(process.peak_resident_bytes().unwrap() >= process.resident_bytes().unwrap());
}

#[tokio::test]
async fn output_without_line_ends_is_bounded_and_recorded() {
    let mut process = shell("head -c 300000 /dev/zero | tr '\\0' x")
        .spawn()
        .await
        .unwrap();
    assert!(process.wait(SOON).await.unwrap().unwrap().success());
    assert!((4..10).contains(&process.stdout().len()));
}
