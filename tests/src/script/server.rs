//! As much of a Redis server as the script uses, in virtual time. It says what Redis 7.0 says, word by word; a test asks both.

use std::collections::BTreeMap;

/// Keys and what they hold: what a snapshot keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keys(BTreeMap<String, Entry>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    value: Value,
    /// The last millisecond of its life.
    end: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Text(String),
    Hash(BTreeMap<String, String>),
    List(Vec<String>),
}

/// What a command answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Nothing.
    Nil,
    /// A number.
    Integer(i64),
    /// A string.
    Text(String),
    /// That it is done.
    Done,
    /// Replies in a row.
    List(Vec<Self>),
    /// An error: its code, and what it says.
    Error(String),
}

/// What a server refuses.
#[derive(Debug, Clone, Default)]
pub struct Troubles {
    /// Its memory is full: what may need more is refused, unless the script has written already.
    pub full: bool,
    /// It is a replica.
    pub replica: bool,
    /// Commands that the user has no permission for.
    pub denied: Vec<&'static str>,
}

/// One server.
#[derive(Debug, Clone)]
pub struct Server {
    /// Its keys.
    pub keys: Keys,
    /// Which run of which server; its run id and replication id follow from it.
    pub identity: u32,
    /// Microseconds of its clock.
    pub now: u64,
    /// What it refuses.
    pub troubles: Troubles,
    /// What was published, by channel and message.
    pub published: Vec<(String, String)>,
    /// How many milliseconds earlier than in Redis keys end.
    early: u64,
    written: bool,
}

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
const NO_INTEGER: &str = "ERR value is not an integer or out of range";

impl Server {
    /// An empty server. In Redis a key with a life of *n* milliseconds is there for the *n*th one, too: 0; with 1, it ends
    /// before.
    #[must_use]
    pub fn new(early: u64) -> Self {
        Self {
            keys: Keys::default(),
            identity: 1,
            now: 0,
            troubles: Troubles::default(),
            published: Vec::new(),
            early,
            written: false,
        }
    }

    /// A script begins.
    pub fn begin(&mut self) {
        self.written = false;
    }

    /// Executes a command of a script.
    pub fn call(&mut self, arguments: &[String]) -> Reply {
        self.try_call(arguments).unwrap_or_else(Reply::Error)
    }

    /// The keys that a command is about.
    #[must_use]
    pub fn keys_of(arguments: &[String]) -> &[String] {
        match arguments {
            [name, rest @ ..] if name.eq_ignore_ascii_case("DEL") => rest,
            [name, ..] if ["TIME", "INFO", "PUBLISH"].iter().any(|keyless| name.eq_ignore_ascii_case(keyless)) => &[],
            [_, key, ..] => std::slice::from_ref(key),
            _ => &[],
        }
    }

    fn try_call(&mut self, arguments: &[String]) -> Result<Reply, String> {
        let (name, rest) =
            arguments.split_first().ok_or("ERR Please specify at least one argument for this redis.call()")?;
        let name = name.to_ascii_uppercase();
        let arity: (usize, usize) = match name.as_str() {
            "TIME" => (0, 0),
            "GET" | "PTTL" | "PERSIST" => (1, 1),
            "PEXPIRE" => (2, 3),
            "PUBLISH" => (2, 2),
            "INFO" => (0, usize::MAX),
            "LRANGE" | "LTRIM" => (3, 3),
            "DEL" => (1, usize::MAX),
            "SET" | "HMGET" | "RPUSH" => (2, usize::MAX),
            "HSET" => (3, usize::MAX),
            _ => return Err("ERR Unknown Redis command called from script".to_owned()),
        };
        if !(arity.0..=arity.1).contains(&rest.len()) {
            return Err("ERR Wrong number of args calling Redis command from script".to_owned());
        }
        if self.troubles.denied.contains(&name.as_str()) {
            return Err("ERR The user executing the script can't run this command or subcommand".to_owned());
        }
        if ["SET", "PEXPIRE", "PERSIST", "DEL", "HSET", "RPUSH", "LTRIM"].contains(&name.as_str()) {
            if self.troubles.replica {
                return Err("READONLY You can't write against a read only replica.".to_owned());
            }
            if self.troubles.full && !self.written && ["SET", "HSET", "RPUSH"].contains(&name.as_str()) {
                return Err("OOM command not allowed when used memory > 'maxmemory'.".to_owned());
            }
            self.written = true;
        }
        self.execute(&name, rest)
    }

    fn execute(&mut self, name: &str, rest: &[String]) -> Result<Reply, String> {
        let now = self.now / 1000;
        Ok(match (name, rest) {
            ("TIME", _) => {
                let parts = [self.now / 1_000_000, self.now % 1_000_000];
                Reply::List(parts.map(|part| Reply::Text(part.to_string())).into())
            }
            ("INFO", [section]) if section == "server" => {
                Reply::Text(format!("# Server\r\nredis_version:7.0.15\r\nrun_id:{:040x}\r\n", self.identity))
            }
            ("INFO", [section]) if section == "replication" => {
                let id = !u64::from(self.identity);
                Reply::Text(format!("# Replication\r\nrole:master\r\nmaster_replid:{id:040x}\r\nmaster_replid2:0\r\n"))
            }
            ("PUBLISH", [channel, message]) => {
                self.published.push((channel.clone(), message.clone()));
                Reply::Integer(0)
            }
            ("GET", [key]) => match self.entry(key) {
                None => Reply::Nil,
                Some(Entry { value: Value::Text(text), .. }) => Reply::Text(text.clone()),
                Some(_) => return Err(WRONG_TYPE.to_owned()),
            },
            ("SET", [key, value, options @ ..]) => self.set(key, value, options)?,
            ("PEXPIRE", [key, life]) => {
                let end = now.saturating_add_signed(life.parse().map_err(|_| NO_INTEGER)?);
                match self.entry(key) {
                    None => Reply::Integer(0),
                    Some(_) if end <= now => self.delete(key),
                    Some(entry) => {
                        entry.end = Some(end);
                        Reply::Integer(1)
                    }
                }
            }
            ("PTTL", [key]) => Reply::Integer(match self.entry(key) {
                None => -2,
                Some(Entry { end: None, .. }) => -1,
                Some(Entry { end: Some(end), .. }) => (*end - now) as i64,
            }),
            ("PERSIST", [key]) => {
                let had_end = self.entry(key).is_some_and(|entry| entry.end.take().is_some());
                Reply::Integer(had_end.into())
            }
            ("DEL", keys) => {
                Reply::Integer(keys.iter().filter(|key| self.delete(key) == Reply::Integer(1)).count() as i64)
            }
            ("HMGET", [key, fields @ ..]) => {
                let hash = match self.entry(key) {
                    None => None,
                    Some(Entry { value: Value::Hash(hash), .. }) => Some(hash),
                    Some(_) => return Err(WRONG_TYPE.to_owned()),
                };
                let field = |name| hash.as_ref().and_then(|hash| hash.get(name));
                Reply::List(
                    fields.iter().map(|name| field(name).map_or(Reply::Nil, |f| Reply::Text(f.clone()))).collect(),
                )
            }
            ("HSET", [key, pairs @ ..]) if pairs.len().is_multiple_of(2) => {
                let Value::Hash(hash) = self.entry_or(key, Value::Hash(BTreeMap::new())) else {
                    return Err(WRONG_TYPE.to_owned());
                };
                let before = hash.len();
                hash.extend(pairs.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())));
                Reply::Integer((hash.len() - before) as i64)
            }
            ("HSET", _) => return Err("ERR wrong number of arguments for 'hset' command".to_owned()),
            ("RPUSH", [key, values @ ..]) => {
                let Value::List(list) = self.entry_or(key, Value::List(Vec::new())) else {
                    return Err(WRONG_TYPE.to_owned());
                };
                list.extend_from_slice(values);
                Reply::Integer(list.len() as i64)
            }
            ("LRANGE", [key, from, to]) => {
                let list = self.list(key)?;
                let range = range(list.len(), from, to)?;
                Reply::List(list[range].iter().map(|value| Reply::Text(value.clone())).collect())
            }
            ("LTRIM", [key, from, to]) => {
                let list = self.list(key)?;
                let kept = list[range(list.len(), from, to)?].to_vec();
                match self.entry(key) {
                    Some(_) if kept.is_empty() => drop(self.delete(key)),
                    Some(entry) => entry.value = Value::List(kept),
                    None => {}
                }
                Reply::Done
            }
            _ => unimplemented!("{name} {rest:?}: the script does not use it so"),
        })
    }

    fn list(&mut self, key: &str) -> Result<Vec<String>, String> {
        match self.entry(key) {
            None => Ok(Vec::new()),
            Some(Entry { value: Value::List(list), .. }) => Ok(list.clone()),
            Some(_) => Err(WRONG_TYPE.to_owned()),
        }
    }

    fn set(&mut self, key: &str, value: &str, options: &[String]) -> Result<Reply, String> {
        let (mut absent_only, mut end) = (false, None);
        let mut options = options.iter();
        while let Some(option) = options.next() {
            match option.to_ascii_uppercase().as_str() {
                "NX" => absent_only = true,
                "PX" => {
                    let life: i64 = options.next().ok_or("ERR syntax error")?.parse().map_err(|_| NO_INTEGER)?;
                    if life <= 0 {
                        return Err("ERR invalid expire time in 'set' command".to_owned());
                    }
                    end = Some(self.now / 1000 + life as u64);
                }
                _ => return Err("ERR syntax error".to_owned()),
            }
        }
        if absent_only && self.entry(key).is_some() {
            return Ok(Reply::Nil);
        }
        self.keys.0.insert(key.to_owned(), Entry { value: Value::Text(value.to_owned()), end });
        Ok(Reply::Done)
    }

    fn delete(&mut self, key: &str) -> Reply {
        let was_there = self.entry(key).is_some();
        self.keys.0.remove(key);
        Reply::Integer(was_there.into())
    }

    fn entry(&mut self, key: &str) -> Option<&mut Entry> {
        let now = self.now / 1000;
        if self.keys.0.get(key).is_some_and(|entry| entry.end.is_some_and(|end| now + self.early > end)) {
            self.keys.0.remove(key);
        }
        self.keys.0.get_mut(key)
    }

    fn entry_or(&mut self, key: &str, value: Value) -> &mut Value {
        self.entry(key);
        &mut self.keys.0.entry(key.to_owned()).or_insert(Entry { value, end: None }).value
    }
}

/// The places that are meant, of which negative ones count from the end.
fn range(length: usize, from: &str, to: &str) -> Result<std::ops::Range<usize>, String> {
    let place = |text: &str| {
        let number: i64 = text.parse().map_err(|_| NO_INTEGER)?;
        Ok::<_, String>(if number < 0 { number + length as i64 } else { number })
    };
    let (from, to) = (place(from)?.max(0) as usize, (place(to)? + 1).max(0) as usize);
    let from = from.min(length);
    Ok(from..to.min(length).max(from))
}
