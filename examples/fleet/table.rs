//! The fleet at one moment, as lines of text.

/// One instance.
#[derive(Debug, Clone)]
pub struct Row {
    pub name: String,
    pub state: State,
    /// For each group the term under which it leads.
    pub terms: Vec<Option<u64>>,
    pub ran: usize,
    /// The newest tick that it ran, in seconds since 1970.
    pub last_tick: Option<i64>,
}

/// What an instance does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Starting,
    Running,
    Stopped,
    Ending,
}

const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// At most `width` characters a line, so that none wraps and the next picture lands on this one.
pub fn render(groups: &[&str], rows: &[Row], width: usize) -> Vec<String> {
    let mut head = format!("{:<10}", "instance");
    for group in groups {
        head.push_str(&format!("{:<25}", format!("group {group}")));
    }
    head.push_str("ticks");
    let mut lines = vec![paint(DIM, &head, width)];
    for row in rows {
        let mut line = format!("{:<10}", row.name);
        for term in &row.terms {
            line.push_str(&format!("{:<25}", cell(row.state, *term)));
        }
        line.push_str(&ticks(row));
        let leads = row.state == State::Running && row.terms.iter().any(Option::is_some);
        let style = match row.state {
            State::Running if leads => BOLD,
            State::Running => PLAIN,
            _ => DIM,
        };
        lines.push(paint(style, &line, width));
    }
    lines
}

fn cell(state: State, term: Option<u64>) -> String {
    match (state, term) {
        (State::Starting, _) => "starts".to_owned(),
        (State::Stopped, _) => "stopped".to_owned(),
        (State::Ending, None) => "ends".to_owned(),
        (State::Running | State::Ending, Some(term)) => format!("leads {term}"),
        (State::Running, None) => "follows".to_owned(),
    }
}

fn ticks(row: &Row) -> String {
    match row.last_tick {
        Some(tick) => format!("{}, last :{:02}", row.ran, tick.rem_euclid(60)),
        None => "0".to_owned(),
    }
}

fn paint(style: &str, line: &str, width: usize) -> String {
    let line: String = line.chars().take(width).collect();
    format!("{style}{line}{PLAIN}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(state: State, terms: Vec<Option<u64>>, ran: usize, last_tick: Option<i64>) -> Row {
        Row { name: "fleet-1".to_owned(), state, terms, ran, last_tick }
    }

    #[test]
    fn a_line_tells_what_an_instance_leads_and_ran() {
        let lines = render(
            &["default", "cleanup"],
            &[
                row(State::Running, vec![Some(1_780_012_345_678_901), None], 7, Some(1_780_012_361)),
                row(State::Stopped, vec![Some(3), None], 0, None),
            ],
            80,
        );
        assert_eq!(lines.len(), 3);
        for told in ["fleet-1", "leads 1780012345678901", "follows", "7, last :41"] {
            assert!(lines[1].contains(told), "{told}: {}", lines[1]);
        }
        assert!(lines[2].contains("stopped") && !lines[2].contains("leads"), "{}", lines[2]);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let lines = render(&["default"], &[row(State::Running, vec![Some(u64::MAX)], 1, Some(1))], 20);
        for line in lines {
            let bare = line.replace(BOLD, "").replace(DIM, "").replace(PLAIN, "");
            assert!(bare.chars().count() <= 20, "{bare:?}");
        }
    }
}
