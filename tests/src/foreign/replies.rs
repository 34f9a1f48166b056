//! Replies of the scripts: whatever a server answers is an answer or an error, one for each command.

use leader_core::testing::redis_script::{self, Reply};

use super::bytes::Bytes;

/// The first words of the answers that the scripts give.
const WORDS: [&str; 46] = [
    "won",
    "held",
    "quarantined",
    "renewed",
    "lost",
    "released",
    "not held",
    "inspected",
    "error",
    "busy",
    "done",
    "completed",
    "forgotten",
    "registered",
    "loaded",
    "unknown",
    "corrupt",
    "late",
    "fenced",
    "run",
    "paused",
    "take",
    "over",
    "moved",
    "already",
    "early",
    "kept",
    "gone",
    "ended",
    "other",
    "returned",
    "superseded",
    "not open",
    "changed",
    "noted",
    "history",
    "failed",
    "since",
    "last",
    "server",
    "record",
    "lease",
    "pod-1",
    "0 * * * * * UTC",
    "",
    "ours",
];

pub(super) fn property(bytes: &[u8]) {
    let mut bytes = Bytes::new(bytes);
    while !bytes.is_empty() {
        let commands = bytes.below(4);
        let mut replies: Vec<Reply> = (0..commands + bytes.below(2)).map(|_| any_answer(&mut bytes)).collect();
        match bytes.below(4) {
            0 => assert_eq!(redis_script::answers(Reply::List(replies), commands).len(), commands),
            1 => assert_eq!(redis_script::lock_answers(Reply::List(replies), commands).len(), commands),
            2 => {
                replies.insert(0, any(&mut bytes, 0));
                assert_eq!(redis_script::tick_answers(Reply::List(replies), commands).len(), commands);
            }
            _ => {
                let reply = any(&mut bytes, 2);
                // What is wrong is said in words, and a list alone is an answer.
                let answer = redis_script::guarded(reply.clone());
                assert!(
                    answer.is_err() || matches!(&reply, Reply::List(fields) if fields.len() > 1),
                    "{reply:?}: {answer:?}"
                );
            }
        }
    }
}

/// Mostly of the shape that answers have.
pub(super) fn any_answer(bytes: &mut Bytes<'_>) -> Reply {
    if bytes.byte().is_multiple_of(16) {
        return any(bytes, 2);
    }
    let word = bytes.choice(&WORDS);
    answer(word, bytes)
}

/// One that begins with this word.
pub(super) fn answer(word: &str, bytes: &mut Bytes<'_>) -> Reply {
    let fields = match word {
        "won" => bytes.choice(&[3, 3, 1]),
        "held" | "inspected" => bytes.choice(&[5, 5, 0]),
        "busy" => bytes.choice(&[2, 4]),
        "quarantined" | "run" | "paused" | "take" | "over" | "already" => 2,
        "lost" | "corrupt" | "moved" | "early" | "superseded" | "error" | "forgotten" => bytes.choice(&[1, 1, 0]),
        "registered" | "loaded" => {
            let mut all = vec![Reply::Text(word.to_owned()), Reply::Text(bytes.choice(&["a", "b"]).to_owned())];
            all.push(Reply::Integer(bytes.choice(&[0, 1_800_000_000, i64::MAX])));
            all.extend(record(bytes).into_iter().map(Reply::Text));
            return Reply::List(all);
        }
        _ => bytes.choice(&[0, 0, 1]),
    };
    let mut all = vec![Reply::Text(word.to_owned())];
    all.extend((0..fields).map(|_| any(bytes, 0)));
    Reply::List(all)
}

/// The texts of a record.
fn record(bytes: &mut Bytes<'_>) -> [String; 10] {
    let mut number = || bytes.number();
    let [since, last] = [number(), number()].map(|number| number.to_string());
    let (tick, nonce, until) = (number(), number(), number());
    let open = format!("{tick}:{nonce:032x}:1:{}:7:{:032x}:pod-1", number() >> 12, 7);
    let (returned, others) = (format!("{}:1,{}:2", number(), number()), format!("{}:{nonce:032x}:1", number()));
    let slot = format!("{}:{}", number() >> 12, number() >> 12);
    let is = |bytes: &mut Bytes<'_>, text: String| if bytes.flag() { text } else { String::new() };
    let is_open = bytes.flag();
    let schedule = bytes.choice(&["0 * * * * * UTC", "other"]).to_owned();
    let of_open = |text: String| if is_open { text } else { String::new() };
    [
        since,
        last,
        schedule,
        bytes.choice(&["a", "b", ""]).to_owned(),
        of_open(open),
        of_open(slot),
        is(bytes, others),
        is(bytes, returned),
        is(bytes, format!("{nonce:032x}")),
        is(bytes, format!("{until} a note")),
    ]
}

/// A reply of any shape, in which others are nested so deep.
pub(super) fn any(bytes: &mut Bytes<'_>, depth: u8) -> Reply {
    match bytes.byte() % 10 {
        0 => Reply::Nil,
        1 => Reply::Text(bytes.text()),
        2 => Reply::Bytes(bytes.text().into_bytes()),
        3 => Reply::Error(bytes.text()),
        4 => Reply::Text(bytes.choice(&WORDS).to_owned()),
        5 | 6 if depth > 0 => Reply::List((0..bytes.below(6)).map(|_| any(bytes, depth - 1)).collect()),
        7 => Reply::Text(bytes.number().to_string()),
        _ => Reply::Integer(bytes.number().cast_signed()),
    }
}
