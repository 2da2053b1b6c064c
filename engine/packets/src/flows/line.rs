//! One flow in one cache line: what is read and written for every frame.

/// In place of a latency that is not known.
const NO_LATENCY: u32 = u32::MAX;
/// Longer latencies are kept as this in a flow's line; the stream keeps their exact extremes.
pub const LONGEST_KEPT_NS: u64 = (u32::MAX - 1) as u64;

/// One flow's counters. 8192 flows are 512 KiB: they stay in the second-level cache.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowLine {
    /// The next sequence expected, extended to 64 bits.
    pub next: u64,
    /// A bit for each sequence that came of the 64 that hold `next - 1`.
    pub recent: u64,
    /// Distinct, intact, by the end of the drain.
    pub received: u64,
    /// The exact sum.
    pub latency_sum_ns: u64,
    /// Of the absolute differences between frames that follow one another (RFC 5481 4.1, IPDV).
    pub variation_sum_ns: u64,
    pub latency_minimum_ns: u32,
    pub latency_maximum_ns: u32,
    /// The latency of the frame `next - 1`.
    last_latency_ns: u32,
    pub reordered: u32,
    pub duplicated: u32,
    pub corrupted: u32,
}

const _: () = assert!(size_of::<FlowLine>() == 64);

impl Default for FlowLine {
    fn default() -> Self {
        Self {
            next: 0,
            recent: 0,
            received: 0,
            latency_sum_ns: 0,
            variation_sum_ns: 0,
            latency_minimum_ns: u32::MAX,
            latency_maximum_ns: 0,
            last_latency_ns: NO_LATENCY,
            reordered: 0,
            duplicated: 0,
            corrupted: 0,
        }
    }
}

/// The delay variation between a frame and the one right before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variation {
    /// The absolute difference of the two latencies.
    Known(u32),
    /// The frame before it is missing, or is the first.
    Unknown,
}

impl FlowLine {
    /// Distinct frames, whole or not.
    #[inline]
    pub fn arrivals(&self) -> u64 {
        self.received + u64::from(self.corrupted)
    }

    /// Sequences passed over that have not come since.
    pub fn missing(&self) -> u64 {
        self.next.saturating_sub(self.arrivals())
    }

    /// Records the latency of an intact frame.
    #[inline(always)]
    pub fn record(&mut self, latency_ns: u64) -> u32 {
        let short = latency_ns.min(LONGEST_KEPT_NS) as u32;
        self.received += 1;
        self.latency_sum_ns += latency_ns;
        self.latency_minimum_ns = self.latency_minimum_ns.min(short);
        self.latency_maximum_ns = self.latency_maximum_ns.max(short);
        short
    }

    /// The variation between the frame just recorded and the one before it in sequence; for frames in order.
    #[inline(always)]
    pub fn vary(&mut self, short_ns: u32) -> Variation {
        let last = std::mem::replace(&mut self.last_latency_ns, short_ns);
        if last == NO_LATENCY {
            return Variation::Unknown;
        }
        let difference = last.abs_diff(short_ns);
        self.variation_sum_ns += u64::from(difference);
        Variation::Known(difference)
    }

    /// The next frame in order has no intact frame right before it.
    pub fn forget_latency(&mut self) {
        self.last_latency_ns = NO_LATENCY;
    }

    /// Adds what another receiver saw of this flow.
    pub fn merge(&mut self, other: &Self) {
        if other.next == 0 && other.duplicated == 0 {
            return;
        }
        if self.next == 0 && self.duplicated == 0 {
            *self = *other;
            return;
        }
        // Each saw a part of the sequences; which of them both missed cannot be told any more.
        if other.next > self.next {
            (self.next, self.recent) = (other.next, other.recent);
        }
        self.received += other.received;
        self.latency_sum_ns += other.latency_sum_ns;
        self.variation_sum_ns += other.variation_sum_ns;
        self.latency_minimum_ns = self.latency_minimum_ns.min(other.latency_minimum_ns);
        self.latency_maximum_ns = self.latency_maximum_ns.max(other.latency_maximum_ns);
        self.forget_latency();
        self.reordered = self.reordered.saturating_add(other.reordered);
        self.duplicated = self.duplicated.saturating_add(other.duplicated);
        self.corrupted = self.corrupted.saturating_add(other.corrupted);
    }
}
