//! Things put together in the order of their first appearance.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

/// The values of each key.
pub(crate) fn grouped<K, V>(pairs: impl Iterator<Item = (K, V)>) -> Vec<(K, Vec<V>)>
where
    K: Eq + Hash + Clone,
{
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    let mut places: HashMap<K, usize> = HashMap::new();
    for (key, value) in pairs {
        let place = *places.entry(key.clone()).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// Each item once.
pub(crate) fn distinct<T: Eq + Hash + Clone>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut known = HashSet::new();
    items.filter(|item| known.insert(item.clone())).collect()
}

/// Items, each with its place.
#[derive(Default)]
pub(crate) struct Places<T>(HashMap<T, usize>);

impl<T: Eq + Hash> Places<T> {
    /// The place of an item, which is the next one if it is new.
    pub fn of(&mut self, item: T) -> usize {
        let next = self.0.len();
        *self.0.entry(item).or_insert(next)
    }

    /// The items by their places.
    pub fn into_items(self) -> Vec<T> {
        let mut items: Vec<(T, usize)> = self.0.into_iter().collect();
        items.sort_by_key(|(_, place)| *place);
        items.into_iter().map(|(item, _)| item).collect()
    }
}
