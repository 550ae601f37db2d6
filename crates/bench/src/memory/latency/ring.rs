//! Rings of chases for the rows: made by the thread that walks them, kept where making them is
//! dear, and shown to lie on the pages that the row names.

use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::sync::Arc;

use flatout_io::cause_text;
use flatout_measure::{TrialError, Warning, size_text, warning};
use flatout_sys::chase::{
    Arena, Chase, LINE_BYTES, Order, Pages, SLOTS, Slot, base_page_bytes, huge_page_bytes,
};
use flatout_sys::{affinity, monotonic_ns, numa};

use super::super::room::Room;
use crate::error::is_refusal;
use crate::workers::on_cpu;

/// From this length on a ring is made once: its order takes as long as a trial (here 5 ms for
/// 8 MiB and 35 ms for 32 MiB, virtual Sapphire Rapids, November 2026), a trial walks a part of it,
/// each time another one, and several pages of 2 MiB may not be there in the next trial.
pub(super) const KEPT_BYTES: u64 = 8 << 20;

/// Share of a ring that may lie on base pages where huge ones were asked for: one in so many. On a
/// busy machine the kernel fails to free a few of hundreds of pages; translation costs a third
/// of a step there, so what they add is below 1 %.
const SMALL_PART: u64 = 64;
/// How often the kernel is asked to put base pages together.
const COLLAPSES: u32 = 4;
/// Of the slots of new memory.
const ALL_FREE: &str = "nobody else has it yet";

/// What tells one ring from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) working_set_bytes: u64,
    pub(super) pages: Pages,
    /// Bytes that are walked in the order of memory before the next jump.
    pub(super) run_bytes: u64,
    /// The memory node on which it lies; none: that of the CPU that walks it.
    pub(super) node: Option<u32>,
}

impl Shape {
    pub(super) fn random(working_set_bytes: u64, pages: Pages) -> Self {
        Self { working_set_bytes, pages, run_bytes: LINE_BYTES, node: None }
    }

    fn order(&self, seed: u64) -> Order {
        Order { seed, run_nodes: (self.run_bytes / LINE_BYTES) as u32 }
    }

    pub(super) fn is_kept(&self) -> bool {
        self.working_set_bytes >= KEPT_BYTES
    }

    /// Memory that it takes while it is made: its pages, and the order of its runs.
    pub(super) fn room_bytes(&self) -> u64 {
        let pages = self.working_set_bytes.next_multiple_of(page_bytes(self.pages));
        pages + self.working_set_bytes / self.run_bytes * 4
    }
}

/// Length of a page of that kind.
pub(super) fn page_bytes(pages: Pages) -> u64 {
    match pages {
        Pages::Base => base_page_bytes() as u64,
        Pages::Huge => huge_page_bytes() as u64,
    }
}

/// Lengths up to which rings share an arena with others of similar length: a short one in a long
/// arena would only be on memory that was hard to get.
const ARENA_CLASSES: [u64; 2] = [64 << 20, 256 << 20];

/// The arenas for rings of these shapes, each as its longest ring: large pages before base pages,
/// which break them up, and long ones first.
pub(super) fn arenas(shapes: &[Shape]) -> Vec<Shape> {
    let class = |shape: &Shape| {
        let class = ARENA_CLASSES.iter().position(|&most| shape.working_set_bytes <= most);
        class.unwrap_or(ARENA_CLASSES.len())
    };
    let mut all = Vec::new();
    for pages in [Pages::Huge, Pages::Base] {
        for wanted in (0..=ARENA_CLASSES.len()).rev() {
            let sets = shapes.iter().filter(|shape| shape.pages == pages && class(shape) == wanted);
            let lengths: Vec<u64> = sets.map(|shape| shape.working_set_bytes).collect();
            let longest = Shape::random(lengths.iter().copied().max().unwrap_or(0), pages);
            all.extend(std::iter::repeat_n(longest, lengths.len().div_ceil(SLOTS)));
        }
    }
    all
}

/// Memory, and the node that was asked for.
type Placed = (Option<u32>, Arc<Arena>);

/// A ring that was made, or why it could not be.
type Made = Result<Arc<Chase>, TrialError>;

/// The rings that are kept, shared by the rows of one run of the sampler.
#[derive(Default)]
pub(super) struct Rings {
    /// The shapes that will be asked for.
    planned: Vec<Shape>,
    /// When no more arenas are made beforehand, on the system's clock.
    ends_ns: u64,
    /// The node of rings that name none, where there are several.
    near: Option<u32>,
    kept: RefCell<Vec<(Shape, Made)>>,
    /// None until the first ring is made.
    arenas: RefCell<Option<Vec<Placed>>>,
}

impl Rings {
    /// Rings of which those in `planned` will be asked for.
    pub(super) fn new(planned: Vec<Shape>) -> Self {
        Self { planned, ends_ns: u64::MAX, ..Self::default() }
    }

    /// The same, whose memory is got beforehand until then; what is not had is got as it is needed. Rings that
    /// name no node lie on `near`.
    pub(super) fn until(self, ends_ns: u64, near: Option<u32>) -> Self {
        Self { ends_ns, near, ..self }
    }

    /// A ring of that shape, made on `cpu`. Small ones have new memory each time: which physical
    /// pages it has decides what a cache holds of it and how far away it is.
    pub(super) fn ring(&self, shape: Shape, cpu: usize, seed: u64) -> Made {
        // First of all, because what is mapped later lies below: to tell the pages of a small
        // ring the kernel need not go through these (20 ms less per trial, November 2026).
        self.prepare(cpu);
        let shape = Shape { node: shape.node.or(self.near), ..shape };
        if !shape.is_kept() {
            let alone = || {
                let slot = Arc::new(make_arena(shape)?).slot().expect(ALL_FREE);
                link(slot, shape, seed)
            };
            return on_cpu(cpu, alone).map(Arc::new);
        }
        let known = |(known, made): &(Shape, Made)| (*known == shape).then(|| made.clone());
        if let Some(made) = self.kept.borrow().iter().find_map(known) {
            return made;
        }
        let slot = self.slot(shape, cpu);
        let made = slot.and_then(|slot| on_cpu(cpu, || link(slot, shape, seed)).map(Arc::new));
        self.kept.borrow_mut().push((shape, made.clone()));
        made
    }

    /// The first of these rings that can be made, and its shape.
    pub(super) fn first(
        &self,
        shapes: &[Shape],
        cpu: usize,
        seed: u64,
    ) -> Result<(Shape, Arc<Chase>), TrialError> {
        let mut why = TrialError::Unsupported("there is no room for a working set".to_owned());
        for (index, &shape) in shapes.iter().enumerate() {
            match self.ring(shape, cpu, seed) {
                Ok(chase) => return Ok((shape, chase)),
                Err(error) if index == 0 => why = error,
                Err(_) => {}
            }
        }
        Err(why)
    }

    /// Makes the planned arenas, once.
    fn prepare(&self, cpu: usize) {
        self.arenas.borrow_mut().get_or_insert_with(|| {
            let planned =
                arenas(&self.planned).into_iter().take_while(|_| monotonic_ns() < self.ends_ns);
            // One that cannot be made is tried again in the length of each ring.
            let near = planned.map(|shape| Shape { node: self.near, ..shape });
            let make = |shape| on_cpu(cpu, || make_arena(shape)).ok();
            near.filter_map(make).map(|arena| (self.near, Arc::new(arena))).collect()
        });
    }

    /// A free slot in the shortest arena that is long enough, or in a new one.
    fn slot(&self, shape: Shape, cpu: usize) -> Result<Slot, TrialError> {
        let mut arenas = self.arenas.borrow_mut();
        let arenas = arenas.get_or_insert_default();
        arenas.sort_by_key(|(_, arena)| arena.length_bytes());
        let fits = |(node, arena): &&Placed| {
            *node == shape.node
                && arena.pages() == shape.pages
                && arena.length_bytes() as u64 >= shape.working_set_bytes
        };
        let free = arenas.iter().filter(fits).find_map(|(_, arena)| arena.slot());
        if let Some(slot) = free {
            return Ok(slot);
        }
        let arena = Arc::new(on_cpu(cpu, || make_arena(shape))?);
        let slot = arena.slot().expect(ALL_FREE);
        arenas.push((shape.node, arena));
        Ok(slot)
    }
}

/// The largest pages that memory can lie on: where large pages are switched off, or the kernel has
/// not even one, nothing is planned for them.
pub(in super::super) fn largest_pages() -> Pages {
    match make_arena(Shape::random(page_bytes(Pages::Huge), Pages::Huge)) {
        Ok(_) => Pages::Huge,
        Err(_) => Pages::Base,
    }
}

/// Memory for a ring, on pages that were looked at.
fn make_arena(shape: Shape) -> Result<Arena, TrialError> {
    let length_bytes = usize::try_from(shape.working_set_bytes).unwrap_or(usize::MAX);
    if let Some(node) = shape.node {
        check_room(shape, node, numa::free_bytes(Path::new("/"), node))?;
    }
    let bound = Arena::new(length_bytes, shape.pages, shape.node);
    // Many containers forbid to bind memory. What this thread touches first lies near its CPU.
    let is_refused = shape.node.is_some() && bound.as_ref().is_err_and(is_refusal);
    let arena = if is_refused { Arena::new(length_bytes, shape.pages, None) } else { bound };
    let arena = arena.map_err(|error| failed(shape, &error))?;
    if let Some(node) = shape.node.filter(|_| is_refused || shape.is_kept()) {
        check_node(arena.pages_by_node().as_deref(), node).map_err(TrialError::Unsupported)?;
    }
    if shape.pages == Pages::Huge {
        put_on_huge_pages(&arena).map_err(TrialError::NoMore)?;
    }
    Ok(arena)
}

fn link(slot: Slot, shape: Shape, seed: u64) -> Result<Chase, TrialError> {
    Chase::new(slot, shape.working_set_bytes, shape.order(seed))
        .map_err(|error| failed(shape, &error))
}

/// Whether a node has room for a ring: what is bound to one that is full ends a process, however much the others
/// have.
fn check_room(shape: Shape, node: u32, free_bytes: Option<u64>) -> Result<(), TrialError> {
    let room = Room::of(free_bytes, None, None);
    if shape.room_bytes() <= room.bytes {
        return Ok(());
    }
    let (needed, reason) = (size_text(shape.room_bytes()), room.reason);
    Err(TrialError::Unsupported(format!("memory node {node}: {needed} are more than {reason}")))
}

/// Whether all pages lie on the node.
fn check_node(pages: Option<&[(u32, u64)]>, node: u32) -> Result<(), String> {
    match pages {
        Some(pages) if pages.iter().all(|&(on, count)| on == node || count == 0) => Ok(()),
        Some(pages) => Err(format!("memory for node {node} lies on nodes {pages:?} (node, pages)")),
        None => Err(format!("whether memory lies on node {node} cannot be read from numa_maps")),
    }
}

/// Sees to it that the arena lies on large pages, as far as the kernel can help.
fn put_on_huge_pages(arena: &Arena) -> Result<(), Warning> {
    let length_bytes = arena.length_bytes() as u64;
    for _ in 0..COLLAPSES {
        if check_huge(arena.huge_bytes(), length_bytes).is_ok() {
            return Ok(());
        }
        // Refusal is seen in what is counted next; some are for the moment only (madvise(2)).
        let _ = arena.collapse();
    }
    check_huge(arena.huge_bytes(), length_bytes)
}

/// Whether it lies on large pages, but for a part that cannot show in a figure.
fn check_huge(huge_bytes: Option<u64>, length_bytes: u64) -> Result<(), Warning> {
    let huge = size_text(page_bytes(Pages::Huge));
    let text = match huge_bytes {
        Some(bytes) if bytes >= length_bytes - length_bytes / SMALL_PART => return Ok(()),
        Some(bytes) => format!(
            "{} of {} lie on pages of {huge}: free memory is in pieces, or transparent huge pages are \
             switched off",
            size_text(bytes),
            size_text(length_bytes)
        ),
        None => {
            format!("whether memory lies on pages of {huge} cannot be read from /proc/self/smaps")
        }
    };
    Err(Warning::new(warning::NO_HUGE_PAGES, text))
}

fn failed(shape: Shape, error: &io::Error) -> TrialError {
    let length = size_text(shape.working_set_bytes);
    let text = format!("cannot make a ring of {length}: {}", cause_text(error));
    match (error.kind(), shape.node) {
        (_, Some(node)) => TrialError::Unsupported(format!("{text} (on memory node {node})")),
        _ => TrialError::Failed(text),
    }
}

/// The CPU on which chases run: the first of `order` that is still allowed, or else the last that is, because
/// the first one of a machine serves most interrupts.
pub(super) fn chase_cpu(order: &[usize]) -> Result<usize, TrialError> {
    let cpus = affinity::allowed_cpus().map_err(|error| {
        TrialError::Failed(format!("cannot read the allowed CPUs: {}", cause_text(&error)))
    })?;
    let first = order.iter().find(|cpu| cpus.contains(cpu));
    first.or(cpus.last()).copied().ok_or_else(|| TrialError::Failed("no CPU is allowed".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_are_not_all_huge_are_told_by_code() {
        assert_eq!(check_huge(Some(4 << 20), 4 << 20), Ok(()));
        assert_eq!(check_huge(Some(510 << 20), 512 << 20), Ok(()));
        assert!(check_huge(Some(502 << 20), 512 << 20).is_err());
        for huge_bytes in [Some(2 << 20), Some(0), None] {
            let warning = check_huge(huge_bytes, 4 << 20).unwrap_err();
            assert_eq!(warning.code, warning::NO_HUGE_PAGES);
        }
    }

    #[test]
    fn nothing_is_bound_to_a_node_that_has_no_room_for_it() {
        let ring = Shape { node: Some(1), ..Shape::random(64 << 20, Pages::Huge) };
        let check = |free_mib: u64| check_room(ring, 1, Some(free_mib << 20));
        assert_eq!(check(200), Ok(()));
        let Err(TrialError::Unsupported(why)) = check(100) else { panic!("it was tried") };
        assert!(why.starts_with("memory node 1: 68 MiB are more than 60 % of 100 MiB"), "{why}");
    }

    #[test]
    fn memory_on_another_node_is_told() {
        assert!(check_node(Some(&[(1, 512), (0, 0)]), 1).is_ok());
        assert!(check_node(Some(&[(1, 500), (0, 12)]), 1).unwrap_err().contains("(0, 12)"));
        assert!(check_node(None, 1).is_err());
    }

    #[test]
    fn large_rings_are_made_once_and_small_ones_anew() {
        let rings = Rings::new(Vec::new());
        let cpu = chase_cpu(&[]).unwrap();
        let large = Shape::random(KEPT_BYTES, Pages::Base);
        let one = rings.ring(large, cpu, 1).unwrap();
        let two = rings.ring(large, cpu, 2).unwrap();
        assert!(Arc::ptr_eq(&one, &two));
        let small = Shape::random(4096, Pages::Base);
        let ring = rings.ring(small, cpu, 1).unwrap();
        assert_eq!(ring.nodes(), 64);
        assert_eq!(rings.kept.borrow().len(), 1);
    }

    #[test]
    fn rings_of_similar_length_share_memory() {
        const MIB: u64 = 1 << 20;
        let huge = [16, 24, 32, 48, 64, 128, 256, 512, 1024];
        let mut shapes: Vec<Shape> =
            huge.iter().map(|mib| Shape::random(mib * MIB, Pages::Huge)).collect();
        shapes.push(Shape::random(512 * MIB, Pages::Base));
        let lengths: Vec<_> =
            arenas(&shapes).iter().map(|one| (one.pages, one.working_set_bytes / MIB)).collect();
        let expected = [
            (Pages::Huge, 1024),
            (Pages::Huge, 256),
            (Pages::Huge, 64),
            (Pages::Huge, 64),
            (Pages::Base, 512),
        ];
        assert_eq!(lengths, expected);
        assert!(arenas(&[]).is_empty());
    }

    #[test]
    fn the_next_ring_serves_where_the_first_cannot_be_made() {
        let rings = Rings::new(vec![Shape::random(KEPT_BYTES, Pages::Base)]);
        let cpu = chase_cpu(&[]).unwrap();
        let shapes = [1 << 60, KEPT_BYTES].map(|bytes| Shape::random(bytes, Pages::Base));
        let (shape, chase) = rings.first(&shapes, cpu, 1).unwrap();
        assert_eq!((shape, chase.nodes() * LINE_BYTES), (shapes[1], KEPT_BYTES));
        assert!(matches!(rings.first(&shapes[..1], cpu, 1), Err(TrialError::Failed(_))));
        assert!(rings.first(&[], cpu, 1).is_err());
    }

    #[test]
    fn a_ring_that_could_not_be_made_is_not_tried_again() {
        let rings = Rings::new(Vec::new());
        let cpu = chase_cpu(&[]).unwrap();
        let endless = Shape::random(1 << 60, Pages::Base);
        let why = rings.ring(endless, cpu, 1).unwrap_err();
        assert_eq!(rings.ring(endless, cpu, 2).unwrap_err(), why);
        assert_eq!(rings.kept.borrow().len(), 1);
    }

    #[test]
    fn the_room_holds_pages_and_order() {
        let shape = Shape::random(1 << 20, Pages::Huge);
        assert_eq!(shape.room_bytes(), (2 << 20) + (1 << 16));
        let runs = Shape { run_bytes: 4096, ..shape };
        assert_eq!(runs.room_bytes(), (2 << 20) + (1 << 10));
    }

    #[test]
    fn chases_run_on_the_strongest_core_that_is_still_allowed() {
        let allowed = affinity::allowed_cpus().unwrap();
        assert_eq!(chase_cpu(&[usize::MAX, allowed[0]]), Ok(allowed[0]));
        assert_eq!(chase_cpu(&[usize::MAX]).ok(), allowed.last().copied());
    }

    #[test]
    fn a_cpu_that_is_gone_ends_a_row_and_does_not_fail_it() {
        let gone = on_cpu(usize::MAX, || Ok(()));
        assert!(matches!(&gone, Err(TrialError::NoMore(why)) if why.code == warning::CPUS_CHANGED));
        assert_eq!(on_cpu(chase_cpu(&[]).unwrap(), || Ok(7)), Ok(7));
    }
}
