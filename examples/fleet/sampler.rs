//! The witness of an instance: a thread that asks `is_leader()` all the time and logs what it saw.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use leader_core::{BootInstant, Elector, Lease};
use leader_examples::history::View;

use crate::log::Log;
use crate::message::Message;

/// From one look to the next; with what the system adds it stays below a millisecond.
const PAUSE: Duration = Duration::from_micros(400);

/// How much of a view a kill may hide.
const FLUSH: Duration = Duration::from_millis(20);

pub struct Sampler {
    end: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<()>>,
}

impl Sampler {
    pub fn start(elector: Elector, log: Arc<Log>) -> io::Result<Self> {
        let end = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&end);
        let run = move || watch(&elector, &log, &ended);
        let thread = std::thread::Builder::new().name("sampler".to_owned()).spawn(run)?;
        Ok(Self { end, thread })
    }

    /// Writes the rest and ends.
    pub fn stop(self) -> io::Result<()> {
        self.end.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the sampler panicked")))
    }
}

fn watch(elector: &Elector, log: &Log, end: &AtomicBool) -> io::Result<()> {
    let mut groups: Vec<Witness> = elector.groups().iter().map(|group| Witness::new(group.as_str())).collect();
    while !end.load(Ordering::Relaxed) {
        for group in &mut groups {
            group.look(elector, log)?;
        }
        std::thread::sleep(PAUSE);
    }
    groups.iter_mut().try_for_each(|group| group.flush(log))
}

/// What was seen of one group.
struct Witness {
    group: String,
    /// The lease that the last look found.
    held: Option<Lease>,
    view: Option<View>,
    flushed_ns: u64,
    told_until: BootInstant,
}

impl Witness {
    fn new(group: &str) -> Self {
        Self { group: group.to_owned(), held: None, view: None, flushed_ns: 0, told_until: BootInstant::default() }
    }

    /// An instant counts as led if a look before it and a look after it found the same term: then it is true however long
    /// this process was stopped between reading the clock and looking.
    fn look(&mut self, elector: &Elector, log: &Log) -> io::Result<()> {
        let now_ns = BootInstant::now().as_nanos();
        let found = if elector.is_leader(&self.group) { elector.lease(&self.group) } else { None };
        let found = found.filter(Lease::is_held);
        let term = |lease: &Option<Lease>| lease.as_ref().map(Lease::term);
        if term(&found) != term(&self.held) {
            self.flush(log)?;
            self.view = None;
        } else if let Some(lease) = &found {
            let view = self.view.get_or_insert_with(|| View {
                group: self.group.clone(),
                instance: elector.instance_id().to_string(),
                term: lease.term().get(),
                began_ns: now_ns,
                ended_ns: now_ns,
            });
            view.ended_ns = now_ns;
            if now_ns >= self.flushed_ns + FLUSH.as_nanos() as u64 {
                self.flush(log)?;
            }
        }
        self.tell_deadline(found.as_ref());
        self.held = found;
        Ok(())
    }

    fn flush(&mut self, log: &Log) -> io::Result<()> {
        let Some(view) = self.view.as_ref().filter(|view| view.ended_ns > self.flushed_ns) else { return Ok(()) };
        self.flushed_ns = view.ended_ns;
        log.append(view.clone())
    }

    fn tell_deadline(&mut self, lease: Option<&Lease>) {
        let Some(lease) = lease.filter(|lease| lease.deadline() > self.told_until) else { return };
        self.told_until = lease.deadline();
        let (group, term, until_ns) = (self.group.clone(), lease.term().get(), self.told_until.as_nanos());
        Message::Renewed { group, term, until_ns }.tell();
    }
}
