//! What stays of very many locks and hand-overs.

use crate::{SHORT, Scene};

const LOCKS: u32 = 10_000;
const FLAPS: usize = 500;

/// The names of all keys.
fn keys(scene: &Scene) -> impl Fn() -> Vec<String> + use<> {
    let client = std::cell::RefCell::new(scene.redis.client().unwrap());
    move || {
        let mut keys: Vec<String> = client.borrow_mut().command(&["KEYS", "*"]).unwrap();
        keys.sort();
        keys
    }
}

#[test]
fn ten_thousand_locks_leave_nothing_in_the_server_and_nothing_in_the_process() {
    let Some((mut scene, _)) = Scene::new(SHORT, &["a"]) else { return };
    let left = keys(&scene);
    assert_eq!(left(), ["leader:default", "{leader:default}:term"]);
    scene.fleet.assert_locks_leave_nothing("a", LOCKS, left);
}

#[test]
fn five_hundred_hand_overs_leave_nothing_in_the_server_and_nothing_in_the_processes() {
    let Some((mut scene, _)) = Scene::new(SHORT, &["a", "b"]) else { return };
    let left = keys(&scene);
    scene.fleet.assert_flaps_leave_nothing(["a", "b"], FLAPS, left);
}
