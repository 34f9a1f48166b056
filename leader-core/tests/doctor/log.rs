//! The log of this process, for tests that count its lines.

use std::fmt::{Debug, Write};
use std::sync::{LazyLock, Once};

use tokio::sync::watch;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// A line under the target `leader`.
#[derive(Debug, Clone, Default)]
struct Line {
    /// Which elector wrote it.
    instance: String,
    level: String,
    message: String,
}

static LINES: LazyLock<watch::Sender<Vec<Line>>> = LazyLock::new(|| watch::Sender::new(Vec::new()));

/// The lines of one elector, which has to have a stable id of its own.
pub(crate) struct Log(&'static str);

impl Log {
    /// Call it before the elector with this id is started.
    pub(crate) fn of(instance: &'static str) -> Self {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| tracing::subscriber::set_global_default(Collector).unwrap());
        Self(instance)
    }

    /// Waits until a line contains this.
    pub(crate) async fn until(&self, part: &str) {
        let arrived =
            |lines: &Vec<Line>| lines.iter().any(|line| line.instance == self.0 && line.message.contains(part));
        LINES.subscribe().wait_for(arrived).await.unwrap();
    }

    /// Waits for the last line, and returns those that contain this, with their levels.
    pub(crate) async fn at_the_end(&self, part: &str) -> Vec<(String, String)> {
        self.until("the elector has ended").await;
        let lines = LINES.borrow();
        let ours = lines.iter().filter(|line| line.instance == self.0 && line.message.contains(part));
        ours.map(|line| (line.level.clone(), line.message.clone())).collect()
    }
}

struct Collector;

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "leader" && metadata.is_event() && *metadata.level() <= Level::INFO
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line { level: event.metadata().level().to_string(), ..Line::default() };
        event.record(&mut line);
        LINES.send_modify(|lines| lines.push(line));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let text = match field.name() {
            "instance" => &mut self.instance,
            "message" => &mut self.message,
            _ => return,
        };
        write!(text, "{value:?}").unwrap();
    }
}
