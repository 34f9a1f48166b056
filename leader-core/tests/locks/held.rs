//! What work knows of the lock that it runs under.

use leader_core::{LockError, Once, held_lock};

use super::*;

#[tokio::test]
async fn work_knows_the_innermost_lock_that_it_runs_under() {
    let elector = start(MemoryStore::new()).await;
    let key = || held_lock().map(|lock| lock.key().to_string());
    assert_eq!(key(), None);
    let outer = elector.lock("outer").run(|lock| {
        assert_eq!(key().as_deref(), Some("outer"), "in the call that makes the future, too");
        let elector = &elector;
        async move {
            assert_eq!(held_lock().map(|held| held.token()), Some(lock.token()));
            let inner = elector.lock("inner").run(|_| async { key() }).await.unwrap();
            let once = elector.once("once").run::<_, LockError, _>(|| async { Ok(key()) }).await.unwrap();
            let spawned = tokio::spawn(async move { key() }).await.unwrap();
            (inner, once, key(), spawned)
        }
    });
    let (inner, once, after, spawned) = outer.await.unwrap();
    assert_eq!(inner.as_deref(), Some("inner"));
    assert_eq!(once, Once::Ran(Some("once:once".to_owned())));
    assert_eq!(after.as_deref(), Some("outer"));
    assert_eq!((spawned, key()), (None, None));
}

#[tokio::test]
async fn what_is_remembered_of_a_lock_ends_with_it() {
    let elector = start(MemoryStore::new()).await;
    let held = elector.lock(KEY).run(|_| async { held_lock() }).await.unwrap().unwrap();
    assert!(!held.is_held());
    // A guard by itself is no work under a lock.
    let _guard = elector.lock(KEY).acquire().await.unwrap();
    assert!(held_lock().is_none());
}
