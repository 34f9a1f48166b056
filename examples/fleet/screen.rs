//! Where the parent speaks: a live table below the news on a terminal, else plain lines.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// From one picture to the next.
const PAUSE: Duration = Duration::from_millis(100);

pub struct Screen {
    /// Standard output, or standard error if the former is for JSON alone.
    out: Box<dyn Write>,
    live: bool,
    began: Instant,
    /// The table that stands below the news.
    table: Vec<String>,
    painted: Option<Instant>,
}

impl Screen {
    pub fn new(json: bool) -> Self {
        let plain = |variable: &str, value: Option<&str>| {
            std::env::var(variable).is_ok_and(|found| !found.is_empty() && value.is_none_or(|value| found == value))
        };
        let live = !json && io::stdout().is_terminal() && !plain("NO_COLOR", None) && !plain("TERM", Some("dumb"));
        let out: Box<dyn Write> = if json { Box::new(io::stderr()) } else { Box::new(io::stdout()) };
        Self { out, live, began: Instant::now(), table: Vec::new(), painted: None }
    }

    /// Text that stands above all news.
    pub fn print(&mut self, text: &str) {
        self.above(&format!("{text}\n"));
    }

    /// One piece of news, with the seconds since the start.
    pub fn say(&mut self, news: &str) {
        let seconds = self.began.elapsed().as_secs_f64();
        self.above(&format!("{seconds:6.2} s  {news}\n"));
    }

    /// Whether a new picture of the fleet is wanted now.
    pub fn wants_table(&self) -> bool {
        self.live && self.painted.is_none_or(|painted| painted.elapsed() >= PAUSE)
    }

    /// How wide a line may be. A terminal that does not know says zero.
    pub fn width(&self) -> usize {
        let columns = rustix::termios::tcgetwinsize(io::stdout()).map_or(0, |size| size.ws_col);
        if columns == 0 { 80 } else { usize::from(columns) }
    }

    /// Shows the table in place of the last one.
    pub fn show(&mut self, table: Vec<String>) {
        if self.live {
            let back = self.back();
            self.table = table;
            self.painted = Some(Instant::now());
            let lines = self.lines();
            self.write(&format!("{back}{lines}"));
        }
    }

    /// Takes the table away.
    pub fn finish(&mut self) {
        self.show(Vec::new());
        self.live = false;
    }

    fn above(&mut self, text: &str) {
        let (back, lines) = (self.back(), self.lines());
        self.write(&format!("{back}{text}{lines}"));
    }

    /// To the first line of the table that is on the screen, and nothing below it.
    fn back(&self) -> String {
        match self.table.len() {
            0 => String::new(),
            lines => format!("\x1b[{lines}A\r\x1b[J"),
        }
    }

    fn lines(&self) -> String {
        self.table.iter().map(|line| format!("{line}\n")).collect()
    }

    /// A reader that has gone away is no reason to stop: the verdict is also in the exit code.
    fn write(&mut self, text: &str) {
        let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
    }
}
