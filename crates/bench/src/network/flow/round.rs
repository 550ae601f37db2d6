//! One test of several clients at the same moment, as their server sees it: what all of them carried
//! in the time in which the windows of all were open.
//!
//! All counters are read at two moments, by whoever opens its window last and by whoever closes its
//! own first. So the sum is bytes ÷ one time, and no sum of rates over different windows.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use flatout_sys::monotonic_ns;
use flatout_sys::socket::tcp_info;

use super::{Connection, End, Socket};
use crate::network::frame::Sum;
use crate::network::spec::{Protocol, Spec, Traffic, Work};
use crate::workers;

/// A test that so many clients run at the same moment.
#[derive(Debug)]
pub struct Round {
    clients: u16,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Those whose window is open.
    open: Vec<Arc<[Connection]>>,
    /// When the window of the last of them opened, and what was carried until then.
    first: Option<[u64; 2]>,
    is_over: bool,
    sum: Sum,
}

/// A client's part in a round.
pub struct Part {
    /// The round.
    pub round: Arc<Round>,
    /// The client's connections.
    pub connections: Arc<[Connection]>,
}

impl Round {
    /// A round whose test is this one, of so many clients. Only of bytes that the server can count is
    /// there a sum.
    pub fn new(spec: &Spec, clients: u16) -> Self {
        let can_count = |flow: super::Flow| {
            flow.protocol == Protocol::Tcp || End::Server.receives(flow.traffic)
        };
        let has_sum = spec.work == Work::Throughput
            && spec.bytes == 0
            && spec.flows().into_iter().all(can_count);
        let sum = Sum { clients: if has_sum { clients } else { 0 }, ..Sum::default() };
        Self { clients, state: Mutex::new(State { sum, ..State::default() }) }
    }

    /// What was carried together: without a time where the windows had none in common.
    pub fn sum(&self) -> Sum {
        workers::lock(&self.state).sum
    }
}

impl Part {
    /// This client's window is open.
    pub(super) fn opened(&self) {
        let mut state = workers::lock(&self.round.state);
        if state.is_over {
            return;
        }
        state.open.push(self.connections.clone());
        if state.open.len() == usize::from(self.round.clients) {
            state.first = carried(&state.open);
        }
    }

    /// This client's window closes.
    pub(super) fn closes(&self) {
        let mut state = workers::lock(&self.round.state);
        let open = std::mem::take(&mut state.open);
        if std::mem::replace(&mut state.is_over, true) || state.sum.clients == 0 {
            return;
        }
        if let (Some([start_ns, before]), Some([end_ns, after])) = (state.first, carried(&open)) {
            state.sum.bytes = after.saturating_sub(before);
            state.sum.window_ns = end_ns.saturating_sub(start_ns);
        }
    }

    /// This client's test has ended before its window did: if no other one's had, there is no sum of all.
    pub(super) fn breaks_off(&self) {
        let mut state = workers::lock(&self.round.state);
        state.is_over = true;
        state.open.clear();
    }
}

/// A moment, and the bytes of all clients until then: received by this end, or by the other end's TCP.
/// Reading takes some time, in the middle of which the moment lies.
fn carried(all: &[Arc<[Connection]>]) -> Option<[u64; 2]> {
    let begun_ns = monotonic_ns();
    let each = all.iter().flat_map(|connections| connections.iter()).map(bytes);
    let bytes = each.sum::<Option<u64>>()?;
    Some([begun_ns.midpoint(monotonic_ns()), bytes])
}

fn bytes(connection: &Connection) -> Option<u64> {
    match (&connection.socket, connection.flow.traffic) {
        (_, Traffic::Up) => Some(connection.counters.bytes.load(Ordering::Relaxed)),
        (Socket::Tcp(stream), _) => Some(tcp_info::of(stream.as_fd()).ok()?.acknowledged_bytes),
        (Socket::Udp(_), _) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::network::spec::{Direction, Flow};

    fn connection(traffic: Traffic) -> (Connection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let far = listener.accept().unwrap().0;
        let flow = Flow { index: 0, traffic, protocol: Protocol::Tcp };
        (Connection::new(flow, Socket::Tcp(near)), far)
    }

    fn parts(direction: Direction, traffic: Traffic) -> (Arc<Round>, [(Part, TcpStream); 2]) {
        let spec = Spec { direction, ..Spec::one_stream() };
        let round = Arc::new(Round::new(&spec, 2));
        let part = || {
            let (connection, far) = connection(traffic);
            (Part { round: round.clone(), connections: [connection].into() }, far)
        };
        let parts = [part(), part()];
        (round, parts)
    }

    fn receive(part: &Part, bytes: u64) {
        part.connections[0].counters.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    #[test]
    fn bytes_count_from_the_last_window_opened_to_the_first_closed() {
        let (round, [(first, _near), (second, _far)]) = parts(Direction::Up, Traffic::Up);
        receive(&second, 1);
        first.opened();
        receive(&first, 10);
        let begun_ns = monotonic_ns();
        second.opened();
        receive(&first, 100);
        receive(&second, 1_000);
        first.closes();
        let most_ns = monotonic_ns() - begun_ns;
        receive(&second, 10_000);
        second.closes();
        let Sum { clients, bytes, window_ns } = round.sum();
        assert_eq!((clients, bytes), (2, 1_100));
        assert!((1..=most_ns).contains(&window_ns), "{window_ns} of {most_ns}");
    }

    #[test]
    fn windows_with_nothing_in_common_have_no_sum() {
        let (round, [(first, _near), (second, _far)]) = parts(Direction::Up, Traffic::Up);
        first.opened();
        receive(&first, 10);
        first.closes();
        second.opened();
        second.closes();
        assert_eq!(round.sum(), Sum { clients: 2, ..Sum::default() });
    }

    #[test]
    fn of_clients_of_which_one_breaks_off_there_is_no_sum() {
        let sum = |is_late: bool| {
            let (round, [(first, _near), (second, _far)]) = parts(Direction::Up, Traffic::Up);
            first.opened();
            second.opened();
            receive(&first, 10);
            if !is_late {
                second.breaks_off();
            }
            first.closes();
            second.breaks_off();
            round.sum()
        };
        assert_eq!(sum(false), Sum { clients: 2, ..Sum::default() });
        assert_eq!(sum(true).bytes, 10, "it had carried its part all the time");
    }

    #[test]
    fn what_the_server_sends_counts_when_the_client_has_it() {
        let (round, [(first, mut near), (second, _far)]) = parts(Direction::Down, Traffic::Down);
        first.opened();
        second.opened();
        let Socket::Tcp(stream) = &first.connections[0].socket else { unreachable!() };
        let mut stream = stream;
        stream.write_all(&[1; 1000]).unwrap();
        near.read_exact(&mut [0; 1000]).unwrap();
        // Its acknowledgement may come a little later.
        while tcp_info::of(stream.as_fd()).unwrap().acknowledged_bytes < 1000 {
            std::thread::yield_now();
        }
        second.closes();
        assert_eq!(round.sum().bytes, 1000);
    }

    #[test]
    fn datagrams_to_the_clients_cannot_be_counted_here() {
        let spec =
            Spec { protocol: Protocol::Udp, direction: Direction::Down, ..Spec::one_stream() };
        assert_eq!(Round::new(&spec, 2).sum().clients, 0);
        let up = Spec { direction: Direction::Up, ..spec };
        assert_eq!(Round::new(&up, 2).sum().clients, 2);
    }
}
