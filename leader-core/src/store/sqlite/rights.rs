//! Who else may write where the database stands: whoever may is trusted like an instance, and that is seldom meant of everybody.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::doctor::Finding;

/// What everybody on the host may write to: the file, its folder, or the folder of locks.
pub(super) fn examine(path: &Path) -> io::Result<Vec<Finding>> {
    let path = fs::canonicalize(path)?;
    let mut locks = path.clone().into_os_string();
    locks.push("-locks");
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut open = Vec::new();
    for place in [&*path, folder, Path::new(&locks)] {
        let everybody = match fs::metadata(place) {
            Ok(metadata) => metadata.permissions().mode() & 0o002 != 0,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        if everybody {
            open.push(place.display().to_string());
        }
    }
    let finding = || {
        Finding::warning(
            format!("everybody on this host may write to {}", open.join(" and ")),
            "whoever can do that can lead, end leases, or put another file in the place of the store",
            "keep the store in a folder of its own that only its users may write to (mode 0700, or 0770 for a group)",
        )
        .coded("open-to-all")
    };
    Ok(if open.is_empty() { Vec::new() } else { vec![finding()] })
}

/// It was not found out.
pub(super) fn unchecked(cause: &dyn fmt::Display) -> Finding {
    Finding::warning(
        format!("who may write where the store is could not be found out: {cause}"),
        "what may be wrong there stays unknown",
        "look at the modes of the file, of its folder and of the folder of locks beside it",
    )
    .coded("unchecked")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::super::SqliteStore;
    use super::*;
    use crate::identity::{Candidate, Incarnation, InstanceId};
    use crate::store::{Announcer, Examination, LeaseStore, Session};

    const TIMEOUT: Duration = Duration::from_secs(60);

    fn candidate() -> Candidate {
        Candidate { id: InstanceId::new("me").unwrap(), incarnation: Incarnation::from_u128(1) }
    }

    async fn found(store: &SqliteStore) -> Vec<Finding> {
        let (candidate, groups, program) = (candidate(), BTreeMap::new(), "billing".to_owned());
        let examination = Examination { candidate, groups, program, ttl: Duration::from_secs(10), timeout: TIMEOUT };
        let found = store.examine(examination).await.unwrap();
        // The tests may run in a container, which is found, too.
        found.into_iter().filter(|finding| finding.code == "open-to-all").collect()
    }

    #[tokio::test]
    async fn what_everybody_may_write_to_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let (path, locks) = (folder.path().join("db"), folder.path().join("db-locks"));
        let (store, announcer) = (SqliteStore::new(&path), Announcer::new().0);
        let (candidate, groups, program) = (candidate(), BTreeMap::new(), "billing".to_owned());
        store.connect(Session { candidate, groups, program, announcer, timeout: TIMEOUT }).await.unwrap();
        let allow = |place: &Path, mode| fs::set_permissions(place, fs::Permissions::from_mode(mode)).unwrap();
        let places = [(&*path, 0o666, 0o640), (folder.path(), 0o1777, 0o770), (&*locks, 0o777, 0o755)];
        places.iter().for_each(|(place, _, tight)| allow(place, *tight));
        assert_eq!(found(&store).await, []);
        for (place, mode, tight) in places {
            allow(place, mode);
            let [finding] = &found(&store).await[..] else { panic!("{}", place.display()) };
            assert!(finding.what.ends_with(&format!("may write to {}", place.display())), "{finding}");
            allow(place, tight);
        }
    }

    #[test]
    fn what_cannot_be_looked_at_is_told_as_that() {
        let folder = tempfile::tempdir().unwrap();
        let (path, locks) = (folder.path().join("db"), folder.path().join("db-locks"));
        fs::write(&path, "").unwrap();
        std::os::unix::fs::symlink(&locks, &locks).unwrap();
        let error = examine(&path).unwrap_err();
        let told = unchecked(&error);
        assert!(told.code == "unchecked" && told.what.ends_with(&error.to_string()), "{told}");
    }
}
