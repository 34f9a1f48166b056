//! A PostgreSQL server of a test's own, which listens to a socket in its folder.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use leader_tests::process::{eventually, installed};
use rustix::process::{Pid, Signal, geteuid, kill_process};

/// The package makes this user; the server refuses to run as root.
const USER: &str = "postgres";

/// A server; it ends when this is dropped, or the test dies.
pub(crate) struct Postgres {
    programs: PathBuf,
    folder: tempfile::TempDir,
    process: Child,
}

impl Postgres {
    /// None, with the reason printed, where no PostgreSQL is installed.
    pub(crate) fn start() -> Option<Self> {
        let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let programs = versions.map(|version| version.path().join("bin")).filter(|bin| bin.join("postgres").exists());
        let programs = installed(programs.max(), "PostgreSQL", "postgresql")?;
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        fs::create_dir(&data).unwrap();
        if geteuid().is_root() {
            let (user, group) = ids();
            chown(&data, Some(user), Some(group)).unwrap();
            fs::set_permissions(folder.path(), Permissions::from_mode(0o711)).unwrap();
        }
        let made = program(&programs.join("initdb"))
            .args(["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--username", USER, "--pgdata"])
            .arg(&data)
            .output()
            .unwrap();
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let process = program(&programs.join("postgres"))
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(&data)
            .args(["-h", "", "-F", "-c", "dynamic_shared_memory_type=mmap", "-c", "max_connections=20"])
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut server = Self { programs, folder, process };
        eventually("PostgreSQL answers", || {
            let log = fs::read_to_string(server.folder.path().join("log")).unwrap();
            assert!(server.process.try_wait().unwrap().is_none(), "PostgreSQL has ended; it wrote:\n{log}");
            server.client().args(["-c", "SELECT 1"]).output().unwrap().status.success().then_some(())
        });
        Some(server)
    }

    /// Runs statements in one session; what was told of them.
    pub(crate) fn run(&self, statements: &[&str]) -> String {
        let mut client = self.client();
        for statement in statements {
            client.args(["-c", statement]);
        }
        let output = client.output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{statements:?}: {told}{}", String::from_utf8_lossy(&output.stderr));
        told
    }

    /// One that lasts.
    pub(crate) fn session(&self) -> Session {
        let mut client = self.client();
        let mut child = client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Session { child, stdin, stdout }
    }

    fn client(&self) -> Command {
        // Errors among the answers: in their place.
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exec \"$@\" 2>&1", "sh"]).arg(self.programs.join("psql"));
        command.args(["-X", "-A", "-t", "-U", USER, "-d", "postgres", "-h"]).arg(self.folder.path().join("data"));
        command.stdin(Stdio::null());
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // At once, and with its processes and its shared memory.
        let _ = kill_process(Pid::from_child(&self.process), Signal::QUIT);
        let _ = self.process.wait();
    }
}

/// A client that is told one statement after the other.
pub(crate) struct Session {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Session {
    /// Runs a statement, and waits for the answer.
    pub(crate) fn told(&mut self, statement: &str) -> String {
        self.tell(statement);
        self.hear()
    }

    /// Runs a statement, and waits for nothing.
    pub(crate) fn tell(&mut self, statement: &str) {
        writeln!(self.stdin, "{statement}\n\\echo over").unwrap();
    }

    /// What the last statement answered.
    pub(crate) fn hear(&mut self) -> String {
        let lines = (&mut self.stdout).lines().map(Result::unwrap).take_while(|line| line != "over");
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// As another user than root. The system ends it with the test, also if that is killed.
fn program(path: &Path) -> Command {
    let mut command = Command::new("/usr/bin/setpriv");
    if geteuid().is_root() {
        let (user, group) = ids();
        command.args([&format!("--reuid={user}"), &format!("--regid={group}"), "--clear-groups"]);
    }
    command.args(["--pdeathsig", "QUIT", "--"]).arg(path);
    // Not one that only root may enter.
    command.current_dir("/");
    command
}

fn ids() -> (u32, u32) {
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let line = users.lines().find(|line| line.split(':').next() == Some(USER)).expect("the package makes this user");
    let numbers: Vec<_> = line.split(':').skip(2).take(2).map(|id| id.parse().unwrap()).collect();
    (numbers[0], numbers[1])
}

/// A statement with parameters, by the name `w`.
pub(crate) fn prepare(statement: &str) -> String {
    format!("PREPARE w AS {}", statement.trim_end_matches(';')) + ";"
}

pub(crate) fn execute(parameters: &[&str]) -> String {
    let quoted: Vec<_> = parameters.iter().map(|parameter| format!("'{parameter}'")).collect();
    format!("EXECUTE w({});", quoted.join(", "))
}

/// How many rows: `UPDATE 1`, `INSERT 0 1`.
pub(crate) fn changed(told: &str) -> u64 {
    told.rsplit(' ').next().and_then(|rows| rows.parse().ok()).unwrap_or_else(|| panic!("`{told}`"))
}
