//! What the log remembers of decisions that stand in other files of the data directory.
//!
//! `state.db`, `pins.known` and `operator.json` can be deleted, and what they held denied, froze and
//! pinned. The log has a row for each of these, so it is the witness that is left: [`Memory`] is the last
//! word of the log about the operator's proof, about each server that was pinned, each freeze and each
//! standing denial or ask. What was allowed is not remembered: nothing is opened by a log.
//!
//! Contract: sealed rows count like those of the table. A segment may be taken elsewhere, so `audit
//! archive` writes what it sealed and still counts down again, as rows `audit_carried`, and says with
//! `carried` in its own row that it did. Only a segment whose memory was not carried has to be there; one
//! that is missing, or is not the one that was sealed, is named and never taken for an empty one.
//!
//! Bounds: one pass over the rows of seven actions; one entry for each thing that they are about.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};
use serde_json::{Map, Value};

use super::event::Event;
use super::heads::{Anchors, Heads};
use super::row::AuditRow;
use super::schema;
use super::segments::{self, Segment};
use crate::database::Database;
use crate::error::StoreError;
use crate::paths;
use crate::state::standing::{Freeze, Frozen, Standing, StandingDecision};

/// The events that are read, each under its action.
const TOLD: [Event; 7] = [
    Event::OperatorProofSet,
    Event::ServerPinned,
    Event::Frozen,
    Event::Thawed,
    Event::StandingDecision,
    Event::AuditCarried,
    Event::AuditArchived,
];

/// What a row is about; of several rows about one thing the last one counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Thing {
    /// How the operator is proven.
    Proof,
    /// That this server was pinned.
    Pinned(String),
    /// That this is frozen.
    Frozen(String),
    /// What was decided beforehand: persona and pattern.
    Standing(String, String),
}

/// One row, as far as it is read.
#[derive(Debug, Clone, PartialEq)]
struct Told {
    id: i64,
    persona: Option<String>,
    details: Map<String, Value>,
}

/// What the log remembers. See the module.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Memory {
    things: BTreeMap<Thing, Told>,
    missing: Vec<PathBuf>,
}

/// A proof of the operator, as the log remembers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProofSet<'a> {
    /// The digest of its record, where the row has one.
    pub record: Option<&'a str>,
}

impl Memory {
    /// Reads what the log of a data directory remembers; nothing where there is no log.
    pub fn read(data_dir: &Path) -> Result<Self, StoreError> {
        Self::until(data_dir, i64::MAX)
    }

    /// The same as it was after row `last`.
    pub(crate) fn until(data_dir: &Path, last: i64) -> Result<Self, StoreError> {
        let path = data_dir.join(paths::AUDIT_DB);
        if path.try_exists().is_ok_and(|there| !there) {
            return Ok(Self::default());
        }
        let database = Database::open_read_only(&path, &schema::FORMAT)?;
        let failed = database.error("read what the audit log remembers");
        if !has_log(&database.connection).map_err(&failed)? {
            return Ok(Self::default());
        }
        let mut rows = told(&database.connection, last).map_err(&failed)?;
        let mut carried_to = carried_to(&rows);
        let mut memory = Self::default();
        // From the youngest on: what an older one said may have been carried into a younger one.
        for segment in segments::all(&database.connection).map_err(&failed)?.iter().rev() {
            if segment.last_id <= carried_to {
                break;
            }
            let file = segments::file(&data_dir.join(paths::AUDIT_ARCHIVE), segment.number);
            match of_segment(&file, segment, last) {
                Some(older) => drop(rows.splice(0..0, older)),
                None => memory.missing.push(file),
            }
            carried_to = carried_to.max(self::carried_to(&rows));
        }
        memory.take(&rows, carried_to);
        Ok(memory)
    }

    /// The proof of the operator that was set last.
    pub fn proof(&self) -> Option<ProofSet<'_>> {
        self.things.get(&Thing::Proof).map(|row| ProofSet { record: row.text("record") })
    }

    /// The names of all servers that were pinned.
    pub(crate) fn pinned(&self) -> impl Iterator<Item = &str> {
        self.things.keys().filter_map(|thing| match thing {
            Thing::Pinned(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// Whether a server of this name was pinned.
    pub fn was_pinned(&self, server: &str) -> bool {
        self.things.contains_key(&Thing::Pinned(server.to_owned()))
    }

    /// Every freeze that was not ended.
    pub fn frozen(&self) -> Vec<Freeze> {
        let freezes = self.things.iter().filter(|(thing, _)| matches!(thing, Thing::Frozen(_)));
        freezes.map(|(_, row)| row.freeze()).collect()
    }

    /// Every standing denial and ask.
    pub fn standing(&self) -> Vec<StandingDecision> {
        let decisions = self.things.iter().filter_map(|(thing, row)| match thing {
            Thing::Standing(persona, pattern) => Some(row.standing(persona, pattern)),
            _ => None,
        });
        decisions.collect()
    }

    /// The segments that would have to be read and cannot be.
    pub fn missing(&self) -> &[PathBuf] {
        &self.missing
    }

    /// What was sealed up to row `last` and still counts, as rows to be written after it.
    pub(crate) fn carried(&self, last: i64) -> Vec<AuditRow> {
        let rows = self.things.values().map(|told| {
            let mut row = AuditRow::new(Event::AuditCarried).with("of", told.event()).with("until", last);
            for (name, value) in
                told.details.iter().filter(|(name, _)| !["event", "of", "until"].contains(&name.as_str()))
            {
                row = row.with(name, value.clone());
            }
            row.persona_id.clone_from(&told.persona);
            row
        });
        rows.collect()
    }

    fn take(&mut self, rows: &[Told], carried_to: i64) {
        let is_carried = |row: &&Told| row.is(Event::AuditCarried);
        let until = |row: &&Told| row.number("until") == Some(carried_to);
        // They are younger than what they speak of, and older than all that came after it.
        for row in rows.iter().filter(is_carried).filter(until) {
            self.hear(row);
        }
        for row in done(rows.iter().filter(|row| !is_carried(row) && row.id > carried_to)) {
            self.hear(row);
        }
    }

    fn hear(&mut self, row: &Told) {
        let event = row.event();
        let of = |event_: Event| event == event_.name();
        let text = |name: &str| row.text(name).unwrap_or_default().to_owned();
        if of(Event::OperatorProofSet) {
            self.things.insert(Thing::Proof, row.clone());
        } else if of(Event::ServerPinned) {
            self.things.insert(Thing::Pinned(text("server")), row.clone());
        } else if of(Event::Frozen) {
            self.things.insert(Thing::Frozen(text("what")), row.clone());
        } else if of(Event::Thawed) {
            self.things.remove(&Thing::Frozen(text("what")));
        } else if of(Event::StandingDecision) {
            let thing = Thing::Standing(row.persona.clone().unwrap_or_default(), text("pattern"));
            // `none`: it was taken back, and nothing is decided any more.
            if matches!(row.text("decision"), Some("allow" | "none")) {
                self.things.remove(&thing);
            } else {
                self.things.insert(thing, row.clone());
            }
        }
    }
}

/// The rows of what was done: where a row with `refused` follows, the row that it is about announced too much.
fn done<'a>(rows: impl Iterator<Item = &'a Told>) -> Vec<&'a Told> {
    let mut done: Vec<&Told> = Vec::new();
    for row in rows {
        if !row.details.contains_key("refused") {
            done.push(row);
        } else if let Some(at) = done.iter().rposition(|announced| row.takes_back(announced)) {
            done.remove(at);
        }
    }
    done
}

impl Told {
    /// Whether this row says of that one that it was not done: the same, and `refused`.
    fn takes_back(&self, announced: &Self) -> bool {
        self.persona == announced.persona
            && self.details.len() == announced.details.len() + 1
            && announced.details.iter().all(|(name, value)| self.details.get(name) == Some(value))
    }

    /// What happened; of a carried row what it speaks of.
    fn event(&self) -> &str {
        let name = if self.is(Event::AuditCarried) { "of" } else { "event" };
        self.text(name).unwrap_or_default()
    }

    fn is(&self, event: Event) -> bool {
        self.text("event") == Some(event.name())
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.details.get(name)?.as_str()
    }

    fn number(&self, name: &str) -> Option<i64> {
        self.details.get(name)?.as_i64()
    }

    fn freeze(&self) -> Freeze {
        let text = |name: &str| self.text(name).unwrap_or_default();
        // What cannot be told apart any more is frozen as a whole.
        let what = frozen(text("what")).unwrap_or(Frozen::All);
        Freeze { what, reason: text("reason").to_owned(), frozen_by: text("by").to_owned() }
    }

    fn standing(&self, persona: &str, pattern: &str) -> StandingDecision {
        let decision = if self.text("decision") == Some(Standing::Ask.as_str()) {
            Standing::Ask
        } else {
            Standing::Deny
        };
        StandingDecision {
            persona: persona.to_owned(),
            pattern: pattern.to_owned(),
            decision,
            read_only: self.details.get("read_only").and_then(Value::as_bool) == Some(true),
            decided_by: self.text("approver").unwrap_or_default().to_owned(),
            decided_at_ms: 0,
        }
    }
}

/// What a row of a freeze is about, from the words that [`Frozen`] is shown with.
fn frozen(text: &str) -> Option<Frozen> {
    match text.split_once(' ') {
        Some(("server", name)) => Some(Frozen::Server(name.to_owned())),
        Some(("plugin", name)) => Some(Frozen::Plugin(name.to_owned())),
        _ => None,
    }
}

/// Why it is certain that a data directory had rows which its `audit.db` does not have: its file is gone
/// or empty, and its anchors or its sealed segments are there.
pub fn log_is_gone(data_dir: &Path) -> Result<Option<String>, StoreError> {
    if has_rows(data_dir)? {
        return Ok(None);
    }
    let anchored = match Heads::of(data_dir).read()? {
        Anchors::Missing => false,
        Anchors::Damaged(_) => true,
        Anchors::Slots(slots) => slots.iter().any(|(_, head)| head.seq > 0),
    };
    if anchored {
        return Ok(Some(format!("{} tells of rows", paths::AUDIT_HEADS)));
    }
    let archive = data_dir.join(paths::AUDIT_ARCHIVE);
    let sealed = segments::file(&archive, 1).exists();
    Ok(sealed.then(|| format!("{} holds sealed rows", paths::AUDIT_ARCHIVE)))
}

/// Whether the log of a data directory has rows, or had some that were sealed.
pub(crate) fn has_rows(data_dir: &Path) -> Result<bool, StoreError> {
    let path = data_dir.join(paths::AUDIT_DB);
    if path.try_exists().is_ok_and(|there| !there) {
        return Ok(false);
    }
    let database = Database::open_read_only(&path, &schema::FORMAT)?;
    let failed = database.error("look for rows");
    if !has_log(&database.connection).map_err(&failed)? {
        return Ok(false);
    }
    let any = |table: &str| {
        database.connection.query_row(&format!("SELECT EXISTS (SELECT 1 FROM {table})"), [], |row| row.get(0))
    };
    if any("audit_log").map_err(&failed)? {
        return Ok(true);
    }
    Ok(!segments::all(&database.connection).map_err(&failed)?.is_empty())
}

/// The servers that rows of the table pinned after row `id`, and the number of the last row looked at.
pub(crate) fn pinned_after(data_dir: &Path, id: i64) -> Result<(Vec<String>, i64), StoreError> {
    let path = data_dir.join(paths::AUDIT_DB);
    if path.try_exists().is_ok_and(|there| !there) {
        return Ok((Vec::new(), id));
    }
    let database = Database::open_read_only(&path, &schema::FORMAT)?;
    let failed = database.error("look for pinned servers");
    let read = || -> rusqlite::Result<(Vec<String>, i64)> {
        let connection = &database.connection;
        if !has_log(connection)? {
            return Ok((Vec::new(), id));
        }
        let last: i64 =
            connection.query_row("SELECT coalesce(max(id), ?1) FROM audit_log", [id], |row| row.get(0))?;
        let mut statement = connection.prepare(
            "SELECT details ->> '$.server' FROM audit_log WHERE id > ?1 AND id <= ?2 AND action = ?3",
        )?;
        let action = Event::ServerPinned.action();
        let names = statement.query_map(params![id, last, action], |row| row.get::<_, Option<String>>(0))?;
        let names = names.collect::<rusqlite::Result<Vec<_>>>()?;
        Ok((names.into_iter().flatten().collect(), last))
    };
    read().map_err(failed)
}

/// Whether a file has the table; a process may have made the file this very moment.
fn has_log(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'audit_log')",
        [],
        |row| row.get(0),
    )
}

/// Up to which row the rows of `rows` say again what was sealed.
fn carried_to(rows: &[Told]) -> i64 {
    let carried = |row: &&Told| {
        row.is(Event::AuditArchived) && row.details.get("carried").and_then(Value::as_bool) == Some(true)
    };
    rows.iter().filter(carried).filter_map(|row| row.number("last_id")).max().unwrap_or(0)
}

fn told(connection: &Connection, last: i64) -> rusqlite::Result<Vec<Told>> {
    let actions: Vec<String> = TOLD.iter().map(|event| format!("'{}'", event.action())).collect();
    let mut statement = connection.prepare(&format!(
        "SELECT id, persona_id, details FROM audit_log WHERE id <= ?1 AND action IN ({}) ORDER BY id",
        actions.join(", ")
    ))?;
    let rows = statement.query_map([last], |row| {
        let details: String = row.get(2)?;
        // What is no JSON any more tells nothing; `verify` says what it thinks.
        let details = serde_json::from_str(&details).unwrap_or_default();
        Ok(Told { id: row.get(0)?, persona: row.get(1)?, details })
    })?;
    rows.collect()
}

/// The rows of a segment, if its file is the one that was sealed.
fn of_segment(file: &Path, segment: &Segment, last: i64) -> Option<Vec<Told>> {
    let digest = segments::digest_of(file).ok()?.to_string();
    if digest != segment.digest {
        tracing::error!(file = %file.display(), "this is not the segment that was sealed, and tells nothing");
        return None;
    }
    let database = Database::open_copy(file, &schema::FORMAT).ok()?;
    told(&database.connection, last).ok()
}

#[cfg(test)]
mod tests;
