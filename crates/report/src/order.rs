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

/// The place of an item, which is added if it is new.
pub(crate) fn place<T: PartialEq>(known: &mut Vec<T>, item: T) -> usize {
    known.iter().position(|other| *other == item).unwrap_or_else(|| {
        known.push(item);
        known.len() - 1
    })
}
