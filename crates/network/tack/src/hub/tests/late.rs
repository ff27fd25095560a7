//! Programs that run late because others have the CPU.

use super::*;

/// A client whose writer always has more, and a server that reads, at 215 Mb/s and 2 ms. A program that is woken waits
/// for its turn on the CPU.
struct Busy {
    net: Net,
    client: u32,
    server: u32,
    stream: StreamId,
    chunk: Vec<u8>,
    /// When each program runs next, and the longest wait for the CPU in microseconds.
    turns: [Option<Instant>; 2],
    waits_us: u64,
    random: Random,
    /// Datagrams that wait at each program.
    waiting: [Vec<(SocketAddr, Vec<u8>)>; 2],
}

impl Busy {
    fn new(waits_us: u64) -> Self {
        let mut net = Net::new();
        (net.one_way, net.per_byte[0]) = (Duration::from_millis(1), Duration::from_nanos(37));
        let client = net.connect();
        net.run(Duration::from_secs(1));
        let stream = net.client.session(client).unwrap().open().unwrap().expect("it may be opened");
        let server = net.server.accept().expect("a client connected");
        Self {
            net,
            client,
            server,
            stream,
            chunk: payload(64 << 10),
            turns: [Some(Instant::ZERO); 2],
            waits_us,
            random: Random(7),
            waiting: Default::default(),
        }
    }

    /// Bytes that the server reads within `time`.
    fn run(&mut self, time: Duration) -> usize {
        let until = self.net.now + time;
        let mut read = 0;
        while self.net.now < until {
            let arrival = self.net.in_flight.peek().map(|Reverse((at, ..))| *at);
            let timers = [self.net.client.poll_timeout(), self.net.server.poll_timeout()];
            // A sleeping hub is woken by its timer.
            let timers = [0, 1].map(|whose| timers[whose].filter(|_| self.turns[whose].is_none()));
            let next =
                self.turns.into_iter().chain(timers).chain([arrival]).flatten().min().expect("they go on");
            self.net.now = next.max(self.net.now);
            if let Some(Reverse((at, ..))) = self.net.in_flight.peek()
                && *at <= self.net.now
            {
                let Reverse((_, _, from, to, bytes)) = self.net.in_flight.pop().expect("it was there");
                let whose = usize::from(to == server_address());
                self.waiting[whose].push((from, bytes));
                self.wake(whose);
            }
            for (whose, timer) in timers.into_iter().enumerate() {
                if timer.is_some_and(|at| at <= self.net.now) {
                    self.wake(whose);
                }
            }
            for whose in 0..2 {
                if self.turns[whose].is_some_and(|at| at <= self.net.now) {
                    self.turns[whose] = None;
                    read += self.turn(whose);
                }
            }
        }
        read
    }

    fn wake(&mut self, whose: usize) {
        let waits = Duration::from_micros(self.random.next() % self.waits_us.max(1));
        self.turns[whose].get_or_insert(self.net.now + waits);
    }

    fn turn(&mut self, whose: usize) -> usize {
        let now = self.net.now;
        let hub = if whose == 0 { &mut self.net.client } else { &mut self.net.server };
        for (from, mut bytes) in self.waiting[whose].drain(..) {
            hub.handle(now, from, Ecn::NotEct, &mut bytes);
        }
        hub.handle_timeout(now);
        let mut read = 0;
        if whose == 0 {
            let session = self.net.client.session(self.client).unwrap();
            while let Ok(Some(_)) = session.write(self.stream, &self.chunk) {}
        } else {
            let session = self.net.server.session(self.server).unwrap();
            while session.next_opened().unwrap().is_some() {}
            if let Ok(buffers) = session.buffers(self.stream) {
                while !buffers.receiving.peek().is_empty() {
                    let len = buffers.receiving.peek().len();
                    buffers.receiving.take(len);
                    read += len;
                }
                session.on_read(self.stream, read);
            }
        }
        self.net.drain();
        self.net.seen.clear();
        read
    }
}

/// With one turn per burst, and bursts no larger than such turns allow, the rates would be 38, 9 and 2 Mb/s and fall
/// every second.
#[test]
fn a_sender_that_waits_for_its_turn_keeps_its_rate() {
    for waits_us in [1_000, 3_000, 10_000] {
        let mut busy = Busy::new(waits_us);
        busy.run(Duration::from_secs(2));
        let mbps = busy.run(Duration::from_secs(2)) * 8 / 2_000_000;
        assert!(mbps > 215 * 8 / 10, "{mbps} Mb/s where turns come after up to {waits_us} us");
    }
}
