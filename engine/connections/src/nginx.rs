//! nginx as the server: a folder with its configuration, certificate and objects, which goes when it ends.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::server::stopped_by_signal;
use crate::{FILLING, tls};

/// What nginx serves.
pub struct Setup {
    /// The address.
    pub on: IpAddr,
    /// The TCP ports.
    pub ports: Vec<u16>,
    /// TLS, 1.2 or 1.3.
    pub tls: bool,
    /// Worker processes.
    pub workers: u64,
    /// Sizes of the objects, in bytes.
    pub objects: Vec<u64>,
    /// The files that each worker may have open.
    pub open_files: u64,
}

/// nginx takes memory for all of them when it starts.
const MOST_CONNECTIONS: u64 = 524_288;

/// Has nginx serve until SIGTERM or SIGINT; the result is a line of JSON.
pub fn run(setup: &Setup) -> io::Result<String> {
    let stop = stopped_by_signal()?;
    let folder = Folder::new()?;
    setup.write(&folder.0)?;
    let mut nginx = Command::new("nginx").arg("-p").arg(&folder.0).args(["-c", "nginx.conf"]).spawn().map_err(told)?;
    let ended = loop {
        if let Some(status) = nginx.try_wait()? {
            break Some(status);
        }
        if stop.load(Ordering::Relaxed) {
            end(&mut nginx)?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    match ended {
        Some(status) => Err(io::Error::other(format!("nginx ended by itself: {status}; its reason is above"))),
        None => Ok(format!(r#"{{"version":"{}","server":"nginx"}}"#, env!("CARGO_PKG_VERSION"))),
    }
}

fn told(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::NotFound => io::Error::other("nginx is not installed\n  next: apt-get install nginx-light"),
        kind => io::Error::new(kind, format!("nginx cannot be started: {error}")),
    }
}

/// Ends nginx with its workers; by force where it does not end within two seconds.
fn end(nginx: &mut Child) -> io::Result<()> {
    let id = rustix::process::Pid::from_child(nginx);
    let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
    for _ in 0..100 {
        if nginx.try_wait()?.is_some() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    nginx.kill()?;
    nginx.wait().map(|_| ())
}

/// A folder of our own, which is removed with what is in it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("nicbench-nginx-{}", std::process::id()));
        // Its workers run as another user, who must read the objects. A folder that is there already is not ours.
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        let folder = Self(path);
        set_mode(&folder.0, 0o755)?;
        Ok(folder)
    }
}

/// What others may do, whatever the umask is.
fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Setup {
    fn write(&self, folder: &Path) -> io::Result<()> {
        let root = folder.join("root");
        let objects = root.join("bytes");
        for path in [&root, &objects] {
            fs::create_dir(path)?;
            set_mode(path, 0o755)?;
        }
        for &bytes in &self.objects {
            let path = objects.join(bytes.to_string());
            fs::write(&path, vec![FILLING; bytes as usize])?;
            set_mode(&path, 0o644)?;
        }
        if self.tls {
            let identity = tls::Identity::new().map_err(io::Error::other)?;
            fs::write(folder.join("certificate.pem"), identity.certificate.pem())?;
            let key = folder.join("key.pem");
            fs::write(&key, "")?;
            set_mode(&key, 0o600)?;
            fs::write(&key, identity.key.serialize_pem())?;
        }
        fs::write(folder.join("nginx.conf"), self.configuration(folder))
    }

    /// Connections stay as long as clients want; every TLS handshake is a whole one; nothing is logged.
    fn configuration(&self, folder: &Path) -> String {
        let folder = folder.display();
        let listens: String = self
            .ports
            .iter()
            .map(|&port| {
                let on = SocketAddr::new(self.on, port);
                format!("    listen {on} backlog=65535 reuseport{};\n", if self.tls { " ssl" } else { "" })
            })
            .collect();
        let secure = if self.tls {
            "    ssl_certificate certificate.pem;\n    ssl_certificate_key key.pem;\n    \
             ssl_protocols TLSv1.2 TLSv1.3;\n    ssl_session_tickets off;\n    ssl_session_cache off;\n"
        } else {
            ""
        };
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .iter()
            .map(|kind| format!("  {kind}_temp_path {folder}/{kind};\n"))
            .collect();
        format!(
            "daemon off;\nworker_processes {};\nworker_rlimit_nofile {};\npid {folder}/nginx.pid;\n\
             error_log stderr error;\nevents {{ worker_connections {}; }}\nhttp {{\n  access_log off;\n  \
             sendfile on;\n  tcp_nopush on;\n  keepalive_requests 4000000000;\n  keepalive_timeout 3600s;\n  \
             client_header_timeout 3600s;\n  open_file_cache max=1000;\n{temporary}  server {{\n{listens}{secure}    \
             root {folder}/root;\n  }}\n}}\n",
            self.workers,
            self.open_files,
            self.open_files.min(MOST_CONNECTIONS),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nginx_listens_on_each_port_by_both_versions_of_tls() {
        let setup = Setup {
            on: [10, 0, 0, 1].into(),
            ports: vec![80, 81],
            tls: true,
            workers: 2,
            objects: vec![1],
            open_files: 4096,
        };
        let text = setup.configuration(Path::new("/tmp/a"));
        for line in ["listen 10.0.0.1:80 ", "listen 10.0.0.1:81 ", "worker_processes 2;", "TLSv1.2 TLSv1.3"] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
