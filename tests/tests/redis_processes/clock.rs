//! Wall clocks of the nodes that jump, and that run fast or slow.

use leader_core::BootInstant;
use leader_tests::process::{Reign, Wall};
use leader_tests::redis::assert_deadline_within_lease;

use crate::{SHORT, Scene, later};

const DAY: i64 = 86_400;

/// Two nodes, each with a wall clock of its own.
fn two() -> Option<(Scene, [Wall; 2], Reign)> {
    let mut scene = Scene::empty(&[])?;
    let [a, b] = ["a", "b"].map(|label| Wall::of(&scene.fleet, label));
    let walls = [a?, b?];
    for (label, wall) in ["a", "b"].iter().zip(&walls) {
        scene.fleet.start(&wall.plan(scene.plan(label, SHORT)));
        wall.assert_reads(&mut scene.fleet, 0);
    }
    let reign = scene.first();
    assert_eq!(reign.label, "a");
    Some((scene, walls, reign))
}

/// Another leads when the leader dies, whatever its clock says.
fn taken_over(scene: &mut Scene, what: &str, reign: &Reign) {
    let killed = BootInstant::now();
    scene.fleet.kill(&reign.label);
    assert_eq!(scene.taken_over(what, killed, reign).label, "b");
    scene.fleet.assert_safe();
}

#[test]
fn jumps_of_wall_clocks_in_either_direction_change_nothing() {
    let Some((mut scene, [a, b], reign)) = two() else { return };
    // The leader's forward and the follower's back, then the other way round, for more than a ttl each.
    for offset in [DAY, -DAY] {
        a.jump_to(offset);
        b.jump_to(-offset);
        a.assert_reads(&mut scene.fleet, offset);
        b.assert_reads(&mut scene.fleet, -offset);
        scene.fleet.still_leads(&reign, "default", later(SHORT + SHORT / 3));
        assert_deadline_within_lease(&mut scene.fleet, &scene.redis, "a", "default");
    }
    assert_eq!(scene.fleet.read_logs().views().len(), 1, "{:?}", scene.fleet.read_logs().views());
    taken_over(&mut scene, "kill -9, with wall clocks two days apart", &reign);
}

#[test]
fn wall_clocks_that_run_fast_or_slow_change_nothing() {
    let Some((mut scene, [a, b], reign)) = two() else { return };
    for (rate_of_a, rate_of_b) in [(0.8, 1.5), (1.5, 0.8)] {
        a.run_at(rate_of_a);
        b.run_at(rate_of_b);
        scene.fleet.still_leads(&reign, "default", later(SHORT + SHORT / 3));
        assert_deadline_within_lease(&mut scene.fleet, &scene.redis, "a", "default");
    }
    taken_over(&mut scene, "kill -9, with wall clocks that run fast and slow", &reign);
}

#[test]
fn a_node_whose_wall_clock_is_wrong_says_by_how_much_and_in_which_direction() {
    let Some(mut scene) = Scene::empty(&[]) else { return };
    for (label, offset, told) in [("ahead", 60, "ahead of the server's"), ("behind", -5, "behind the server's")] {
        let Some(wall) = Wall::of(&scene.fleet, label) else { return };
        wall.jump_to(offset);
        scene.fleet.start(&wall.plan(scene.plan(label, SHORT)));
        let text = scene.fleet.until("it says so", |fleet| {
            let status = fleet.status(label);
            let problems = status["problems"].as_array().unwrap().iter();
            let mut texts = problems.filter_map(|problem| problem["text"].as_str());
            texts.find(|text| text.contains("wall clock is")).map(str::to_owned)
        });
        assert!(text.contains(told), "{text}");
        // Never more than it is; and less by the round trip, which may be long on a busy machine.
        let by: f64 = text.split(' ').find_map(|word| word.parse().ok()).unwrap();
        let most = offset.unsigned_abs() as f64 + 0.2;
        assert!((most / 2.6..most).contains(&by), "{text}");
    }
}
