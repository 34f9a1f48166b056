//! The SQL in the documentation of fences, word for word, on SQLite and on PostgreSQL: a token that is too old changes no row.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in the helpers of tests too")]

mod postgres;

use rusqlite::Connection;

use postgres::Postgres;

const DOCUMENTATION: &str = include_str!("../../../leader-core/src/fence/sql.md");

/// The statements of the documentation.
struct Statements {
    accounts: &'static str,
    update: &'static str,
    upsert: &'static str,
    fences: &'static str,
    fence: &'static str,
}

impl Statements {
    fn documented() -> Self {
        let blocks = DOCUMENTATION.split("```sql\n").skip(1).map(|rest| rest.split_once("```").unwrap().0.trim());
        let all: Vec<_> = blocks.collect();
        let [accounts, update, upsert, fences, fence] = all[..] else { panic!("{all:#?}") };
        Self { accounts, update, upsert, fences, fence }
    }
}

/// A database, and how it runs a statement of the documentation with these parameters: how many rows were changed.
trait Database {
    fn create(&mut self, statement: &str);
    fn change(&mut self, statement: &str, parameters: &[&str]) -> u64;
    /// A number, if there is one.
    fn number(&mut self, query: &str) -> Option<i64>;
}

impl Database for Connection {
    fn create(&mut self, statement: &str) {
        self.execute(statement, []).unwrap();
    }

    fn change(&mut self, statement: &str, parameters: &[&str]) -> u64 {
        // Numbers as numbers: SQLite compares a text with a column as the column is, and a program binds what it has.
        let parameters: Vec<Box<dyn rusqlite::ToSql>> = parameters
            .iter()
            .map(|parameter| match parameter.parse::<i64>() {
                Ok(number) => Box::new(number) as Box<dyn rusqlite::ToSql>,
                Err(_) => Box::new((*parameter).to_owned()),
            })
            .collect();
        self.execute(statement, rusqlite::params_from_iter(parameters)).unwrap().try_into().unwrap()
    }

    fn number(&mut self, query: &str) -> Option<i64> {
        use rusqlite::OptionalExtension;
        self.query_row(query, [], |row| row.get(0)).optional().unwrap()
    }
}

impl Database for Postgres {
    fn create(&mut self, statement: &str) {
        self.run(&[statement]);
    }

    fn change(&mut self, statement: &str, parameters: &[&str]) -> u64 {
        let told = self.run(&[&postgres::prepare(statement), &postgres::execute(parameters)]);
        postgres::changed(told.lines().last().unwrap())
    }

    fn number(&mut self, query: &str) -> Option<i64> {
        self.run(&[query]).trim().parse().ok()
    }
}

/// Tokens as they are: about the time in µs.
const OLD: &str = "1750000000000001";
const NEW: &str = "1750000000000002";

fn a_token_that_is_too_old_changes_no_row(database: &mut impl Database) {
    let documented = Statements::documented();
    database.create(documented.accounts);
    let balance = |database: &mut dyn Database| database.number("SELECT balance FROM accounts WHERE id = 7");
    // There is no row.
    assert_eq!(database.change(documented.update, &["10", OLD, "7"]), 0);
    assert_eq!(database.change(documented.upsert, &["7", "10", OLD]), 1);
    assert_eq!(balance(database), Some(10));
    // As often as one likes.
    assert_eq!(database.change(documented.update, &["20", OLD, "7"]), 1);
    assert_eq!(database.change(documented.upsert, &["7", "30", OLD]), 1);
    assert_eq!(balance(database), Some(30));
    // The newer one begins with either of them.
    assert_eq!(database.change(documented.update, &["40", NEW, "7"]), 1);
    assert_eq!(database.change(documented.update, &["50", OLD, "7"]), 0);
    assert_eq!(database.change(documented.upsert, &["7", "60", OLD]), 0);
    assert_eq!(balance(database), Some(40));
    assert_eq!(database.change(documented.upsert, &["7", "70", NEW]), 1);
    assert_eq!(database.change(documented.upsert, &["8", "80", NEW]), 1);
    assert_eq!(database.change(documented.upsert, &["8", "90", OLD]), 0);
    assert_eq!((balance(database), database.number("SELECT balance FROM accounts WHERE id = 8")), (Some(70), Some(80)));
    // One for all.
    database.create(documented.fences);
    for (token, changed) in [(OLD, 1), (OLD, 1), (NEW, 1), (OLD, 0), (NEW, 1)] {
        assert_eq!(database.change(documented.fence, &["billing", token]), changed, "{token}");
    }
    assert_eq!(database.change(documented.fence, &["another", OLD]), 1);
    assert_eq!(database.number("SELECT token FROM fences WHERE name = 'billing'"), NEW.parse().ok());
}

#[test]
fn on_sqlite_a_token_that_is_too_old_changes_no_row() {
    a_token_that_is_too_old_changes_no_row(&mut Connection::open_in_memory().unwrap());
}

#[test]
fn on_postgresql_a_token_that_is_too_old_changes_no_row() {
    let Some(mut server) = Postgres::start() else { return };
    a_token_that_is_too_old_changes_no_row(&mut server);
}

/// Two transactions at once, of which the newer one comes first.
#[test]
fn on_postgresql_who_has_waited_for_a_newer_one_is_too_old() {
    let Some(mut server) = Postgres::start() else { return };
    let documented = Statements::documented();
    server.create(documented.fences);
    server.change(documented.fence, &["billing", "1"]);
    for (level, told) in [("READ COMMITTED", "INSERT 0 0"), ("REPEATABLE READ", "ERROR:"), ("SERIALIZABLE", "ERROR:")] {
        server.run(&["UPDATE fences SET token = 1"]);
        let (mut newer, mut older) = (server.session(), server.session());
        for session in [&mut newer, &mut older] {
            session.told(&postgres::prepare(documented.fence));
            session.told(&format!("BEGIN ISOLATION LEVEL {level};"));
            // From here on it sees what there is now.
            session.told("SELECT token FROM fences;");
        }
        assert_eq!(newer.told(&postgres::execute(&["billing", NEW])), "INSERT 0 1");
        older.tell(&postgres::execute(&["billing", OLD]));
        leader_tests::process::eventually("the older one waits", || {
            let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
            (server.number(waiting) == Some(1)).then_some(())
        });
        assert_eq!(newer.told("COMMIT;"), "COMMIT");
        let outcome = older.hear();
        assert!(outcome.starts_with(told), "{level}: {outcome}");
        older.told("ROLLBACK;");
        assert_eq!(server.number("SELECT token FROM fences WHERE name = 'billing'"), NEW.parse().ok());
    }
}
