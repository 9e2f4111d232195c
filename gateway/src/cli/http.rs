//! One HTTP/1.1 GET over plain TCP: all that `status` needs of the admin address.

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

/// How long a connect, and each read or write, may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// Largest answer that is read.
const MAX_ANSWER_BYTES: u64 = 8 * 1024 * 1024;

/// A status code and the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: String,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    /// Only `http://HOST:PORT` is understood.
    #[error("{url:?} is no http://HOST:PORT address")]
    Url {
        /// As given.
        url: String,
    },
    /// Nobody answers there.
    #[error("no answer from {host}")]
    Io {
        /// Where.
        host: String,
        /// Why.
        source: std::io::Error,
    },
    /// Somebody answers who speaks no HTTP.
    #[error("{host} does not speak HTTP")]
    NotHttp {
        /// Where.
        host: String,
    },
}

/// Asks `url` (`http://HOST:PORT`) for `path`.
pub(super) fn get(url: &str, path: &str, token: Option<&str>) -> Result<Answer, HttpError> {
    let host = url
        .strip_prefix("http://")
        .map(|rest| rest.trim_end_matches('/'))
        .filter(|host| !host.is_empty() && !host.contains(['/', ' ', '@']))
        .ok_or_else(|| HttpError::Url {
            url: url.to_owned(),
        })?;
    let io = |source| HttpError::Io {
        host: host.to_owned(),
        source,
    };
    let mut stream = connect(host).map_err(io)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(io)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(io)?;
    let token = token.map_or_else(String::new, |it| format!("Authorization: Bearer {it}\r\n"));
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{token}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(io)?;
    let mut answer = Vec::new();
    stream
        .take(MAX_ANSWER_BYTES)
        .read_to_end(&mut answer)
        .map_err(io)?;
    parse(&answer).ok_or_else(|| HttpError::NotHttp {
        host: host.to_owned(),
    })
}

fn connect(host: &str) -> std::io::Result<TcpStream> {
    let mut last = std::io::Error::from(std::io::ErrorKind::NotFound);
    for address in host.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn parse(answer: &[u8]) -> Option<Answer> {
    let split = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..split]).ok()?;
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    if !words.next()?.starts_with("HTTP/1.") {
        return None;
    }
    let status = words.next()?.parse().ok()?;
    let chunked = lines.any(|line| {
        let line = line.to_ascii_lowercase();
        line.starts_with("transfer-encoding:") && line.contains("chunked")
    });
    let body = &answer[split + 4..];
    let body = if chunked {
        unchunk(body)?
    } else {
        body.to_owned()
    };
    Some(Answer {
        status,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

fn unchunk(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let size = std::str::from_utf8(&rest[..end])
            .ok()?
            .split(';')
            .next()?
            .trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        rest = rest.get(end + 2..)?;
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(..size)?);
        rest = rest.get(size.checked_add(2)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_with_and_without_chunks_are_read() {
        let plain = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        assert_eq!(
            parse(plain),
            Some(Answer {
                status: 200,
                body: "ok".into()
            })
        );
        let chunked = b"HTTP/1.1 503 X\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1;x\r\nd\r\n0\r\n\r\n";
        assert_eq!(
            parse(chunked),
            Some(Answer {
                status: 503,
                body: "abcd".into()
            })
        );
    }

    #[test]
    fn what_is_no_answer_is_none() {
        for bytes in [
            &b""[..],
            b"SSH-2.0-x\r\n\r\n",
            b"HTTP/1.1 abc\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nab",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab\r\n",
        ] {
            assert_eq!(parse(bytes), None, "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn only_plain_addresses_are_asked() {
        for url in [
            "https://a:1",
            "a:1",
            "http://",
            "http://a/b",
            "http://u@a",
            "http://a b",
        ] {
            assert!(
                matches!(get(url, "/", None), Err(HttpError::Url { .. })),
                "{url}"
            );
        }
    }
}
