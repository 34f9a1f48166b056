//! The state that jobs are lent: one value of each type.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::registration::Shared;

/// Values by their type, which may be `dyn Trait`.
#[derive(Default)]
pub struct Data {
    /// Under the id of `T` an `Arc<T>`: an `Any` has to be of a known size, which `T` need not be.
    values: HashMap<TypeId, Box<dyn Any + Send + Sync>>,
}

impl Data {
    /// Puts a value under its type. Returns whether it took the place of another one.
    pub fn insert<T: ?Sized + Shared>(&mut self, value: Arc<T>) -> bool {
        self.values.insert(TypeId::of::<T>(), Box::new(value)).is_some()
    }

    /// The value of this type.
    #[must_use]
    pub fn get<T: ?Sized + 'static>(&self) -> Option<&T> {
        self.values.get(&TypeId::of::<T>())?.downcast_ref::<Arc<T>>().map(|value| &**value)
    }

    /// Whether there is a value of this type.
    #[must_use]
    pub fn contains(&self, type_id: TypeId) -> bool {
        self.values.contains_key(&type_id)
    }
}

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Data").field("values", &self.values.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_by_its_type_also_behind_a_trait() {
        let mut data = Data::default();
        assert!(!data.insert(Arc::new(7_u32)));
        assert!(data.insert(Arc::new(8_u32)));
        data.insert::<dyn fmt::Display + Send + Sync>(Arc::new("shown"));
        assert_eq!(data.get::<u32>(), Some(&8));
        assert_eq!(data.get::<dyn fmt::Display + Send + Sync>().map(ToString::to_string), Some("shown".to_owned()));
        assert_eq!(data.get::<u64>(), None);
        assert!(data.contains(TypeId::of::<u32>()) && !data.contains(TypeId::of::<u64>()));
    }
}
