//! What is wrong about a file, or about how instances use it: judged, without I/O, by what was [seen](super::look).

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::card::Card;
use super::host::Host;
use super::look::{Rows, Surroundings};
use super::row::Row;
use crate::clock::BootInstant;
use crate::doctor::{self, Finding, Several};
use crate::group::GroupName;
use crate::store::{Examination, JobName};

/// A job that has not run for so long is forgotten, not renamed.
const RECENT: Duration = Duration::from_secs(30 * 24 * 3600);

/// When it was looked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment<'a> {
    pub(super) here: &'a Host,
    pub(super) boot: BootInstant,
    /// Since 1970.
    pub(super) wall: Duration,
}

pub(super) fn judge(
    examination: &Examination,
    path: &Path,
    around: &Surroundings,
    rows: &BTreeMap<GroupName, Rows>,
    moment: Moment<'_>,
) -> Vec<Finding> {
    let place = around.file_system.and_then(|system| system.judge(path, around.in_container));
    let (same_id, mut leases) = (same_id(examination, around), Leases::default());
    for (group, rows) in rows {
        match &rows.lease {
            Ok(row) => leases.look(group, row, examination, around, moment),
            Err(cause) => leases.unread.add(group, format!("`{group}` ({cause})")),
        }
        leases.look_at_records(group, &rows.jobs, examination, around, moment.wall);
    }
    place.into_iter().chain(same_id).chain(leases.judge(path)).collect()
}

fn same_id(examination: &Examination, around: &Surroundings) -> Option<Finding> {
    let own = &examination.candidate;
    let others = around.alive.iter().filter(|(incarnation, _)| **incarnation != own.incarnation);
    let same = others.filter_map(|(_, card)| card.as_ref()).filter(|card| card.id == own.id);
    let shares = |card: &Card| card.work.keys().any(|group| examination.groups.contains_key(group));
    // One with very many groups does not say which.
    let met: Vec<&Card> = same.filter(|card| card.work.is_empty() || shares(card)).collect();
    let places: Vec<String> = met.iter().map(|card| card.place.clone()).collect();
    let surely = met.iter().any(|card| shares(card));
    (!places.is_empty()).then(|| doctor::same_id(own.id.as_str(), &places, surely))
}

/// What was found of the groups.
#[derive(Default)]
struct Leases {
    elsewhere: Several,
    other_clock: Several,
    other_ttl: Several,
    other_program: Several,
    other_jobs: Several,
    unused: Several,
    unread: Several,
}

impl Leases {
    fn look(
        &mut self,
        group: &GroupName,
        row: &Row,
        examination: &Examination,
        around: &Surroundings,
        Moment { here, boot, wall }: Moment<'_>,
    ) {
        let Some(last) = row.record.last.as_ref().filter(|last| !last.released) else { return };
        let holder = &last.holder;
        let held = |more: &str| format!("`{group}` (held by `{}`{more})", holder.id);
        if row.host.boot != here.boot {
            // Or it is what was left when the host was started again.
            if around.elsewhere.contains(group) {
                self.elsewhere.add(group, held(""));
            }
            return;
        }
        let Some(card) = around.alive.get(&holder.incarnation).filter(|_| *holder != examination.candidate) else {
            return;
        };
        if row.host.clock != here.clock {
            self.other_clock.add(group, held(""));
        }
        // While an older incarnation may believe, the lease lasts longer than its holder's ttl.
        let is_plain = row.host.clock != here.clock || row.older_until <= boot;
        if let Some(text) = doctor::judge_ttl(examination.ttl, row.ttl, Duration::ZERO).filter(|_| is_plain) {
            self.other_ttl.add(group, held(&format!(" {text}")));
        }
        let Some(work) = card.as_ref().and_then(|card| card.work.get(group)) else { return };
        let lines = examination.groups.get(group).map_or(&[][..], Vec::as_slice);
        // Terms are at least the wall clock of their acquisition.
        let led = wall.saturating_sub(Duration::from_micros(last.term.get()));
        if let Some(lack) = doctor::lack(work, &examination.program, lines, Some(led)) {
            let kind = if lack.of_another_program { &mut self.other_program } else { &mut self.other_jobs };
            kind.add(group, held(&format!(" {}", lack.text)));
        }
    }

    /// Records of jobs that no instance has any more, if that can be told.
    fn look_at_records(
        &mut self,
        group: &GroupName,
        jobs: &[(JobName, i64)],
        examination: &Examination,
        around: &Surroundings,
        wall: Duration,
    ) {
        let own = examination.groups.get(group).map(|lines| doctor::describe(&examination.program, lines));
        let others = around.alive.iter().filter(|(incarnation, _)| **incarnation != examination.candidate.incarnation);
        // One that does not say what it does, or has not started its jobs yet, may have each of them.
        let Some(others) = others.map(|(_, card)| card.as_ref()).collect::<Option<Vec<_>>>() else { return };
        let mut work: Vec<&str> = own.as_deref().into_iter().collect();
        for card in others {
            match card.work.get(group) {
                Some(described) => work.push(described),
                None if card.work.is_empty() => return,
                None => {}
            }
        }
        let Some(known) = work.into_iter().map(doctor::jobs_in).collect::<Option<Vec<_>>>() else { return };
        for (job, last) in jobs {
            let is_recent = wall.as_secs().saturating_sub(u64::try_from(*last).unwrap_or_default()) < RECENT.as_secs();
            if is_recent && !known.iter().flatten().any(|name| *name == job.as_str()) {
                self.unused.add(group, format!("job `{job}` of group `{group}`"));
            }
        }
    }

    fn judge(&self, path: &Path) -> Vec<Finding> {
        let path = path.display();
        let elsewhere = self.elsewhere.judge(|texts| {
            Finding::error(
                format!("`{path}` is used from another host or virtual machine: {texts}"),
                "SQLite's log and the locks by which instances see each other live hold under one kernel only: two may lead, \
                 and the file may be damaged",
                "use a store that hosts share",
            )
            .coded("other-host")
        });
        let other_clock = self.other_clock.judge(|texts| {
            Finding::warning(
                format!("leaders on this host have another boot clock (another time namespace): {texts}"),
                "how long their leases last cannot be told here: one whose holder hangs is taken only after it was seen \
                 unchanged for a whole ttl",
                "let all containers that share the file use the host's time namespace",
            )
            .coded("other-clock")
        });
        let unused = self.unused.judge(|texts| {
            Finding::warning(
                format!("the ledger has records of the last 30 days of jobs that no instance has any more: {texts}"),
                "one that was renamed began anew under its new name: ticks between its last and its first were run by nobody",
                "if it was renamed, say so (renamed_from); if it is gone for good, this passes 30 days after its last tick",
            )
            .coded("unused-record")
        });
        let unread = self.unread.judge(|texts| {
            Finding::warning(
                format!("the leases of these groups could not be checked: {texts}"),
                "what may be wrong there stays unknown",
                "ask again by Elector::doctor",
            )
            .coded("unchecked")
        });
        let program = self.other_program.judge(doctor::other_program);
        let jobs = self.other_jobs.judge(doctor::other_jobs);
        let ttl = self.other_ttl.judge(|texts| doctor::other_ttl(texts, ""));
        [elsewhere, program, jobs, ttl, other_clock, unused, unread].into_iter().flatten().collect()
    }
}
