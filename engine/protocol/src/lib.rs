//! The messages of `protocol/README.md` as types, for every engine binary.
//!
//! Unknown fields are ignored, unknown commands refused. Unknown values are `None`, never zero.
#![warn(missing_docs)]

mod configure;
mod detail;
mod error;
mod frame_program;
mod frames;
mod frames_result;
mod generated;
mod generator;
mod hosts;
mod lease;
mod lines;
mod monitor;
mod reading;
mod reflect;
mod reply;
mod request;
mod stamps;
mod start;
mod traffic;

pub use configure::{
    AddressRange, ClockError, ClockSource, Configure, PortKind, PortRequest, SimulatedDut, SimulatedEgress,
    WorkerRequest,
};
pub use detail::{
    ArrivalsReading, CaptureReading, CaptureRequest, FlowReport, FlowReportReading, FlowsReading, GroupReading,
    IntervalsReading, MAXIMUM_FLOW_GROUPS, MAXIMUM_REORDERING_N, MINIMUM_REORDERING_N, ReorderingReading,
    SilenceReading, TrafficClassesReading, VariationReading,
};
pub use error::{ErrorKind, ErrorReport};
pub use frame_program::{
    Filler, Fixup, FrameField, FrameMatch, FrameSizes, PseudoHeader, RandomSizes, RandomValues, ValueRange, Values,
    Wide,
};
pub use frames::{
    FrameOrder, FramesCommand, FramesConfigure, FramesConfigureReply, FramesContent, FramesEngine, FramesEvent,
    FramesHello, FramesReply, FramesRequest, FramesStats, FramesTask, SyncPolicy, Verify, parse_frames,
};
pub use frames_result::{FailureKind, FramesEndedBy, FramesFailure, FramesInterval, FramesResult, Times};
pub use generated::{
    CapturedFile, CapturesReply, ControlReply, FlowAtPort, FlowColumns, FlowLatency, FlowState, FlowTagged, FlowTally,
    LoadReply, PortCounts, TallyReply,
};
pub use generator::{
    Burst, CaptureAction, CaptureFilter, CaptureFormat, Control, FlowAction, FlowRequest, FlowTag, Load, PortCapture,
    Tally,
};
pub use hosts::{
    Duplicate, HostAddress, HostCounts, HostRequest, HostTag, Hosts, HostsReply, Neighbour, NeighbourState, Neighbours,
    NeighboursReply, Ping, PingReply, PingRequest, PingState,
};
pub use lease::{LEASE, Lease};
pub use lines::next_line;
pub use monitor::{
    Census, CensusGroup, CensusProcess, Change, ChangeAction, ChangeKind, Changes, Cost, MonitorCommand,
    MonitorConfigure, MonitorConfigureReply, MonitorEvent, MonitorHello, MonitorReply, MonitorRequest,
    NamespaceRequest, SeriesDeclaration, SeriesKind, SourceReply, Unwatched, WatchedNetwork, parse_monitor,
    sample_line,
};
pub use reading::{
    CpuTimes, HealthReading, LatencyReading, LooksReading, PortReading, Reading, SharedCoreReading, StreamReading,
    TransmitGapsReading, WorkerReading,
};
pub use reflect::{
    DirectionStats, EndedBy, FateLogReport, FateLogRequest, Faults, Reflect, ReflectCommand, ReflectEvent, ReflectMode,
    ReflectStats, WhenFull,
};
pub use reply::{
    ClockReply, ClockTimeReply, ConfigureReply, Event, EventKind, HelloReply, LateReply, PortReply, Reply, SentReply,
    StartReply, StatsReply, StreamProgress,
};
pub use request::{Command, Refusal, Request, parse};
pub use stamps::{CardClock, StampClockReply, StampReading, Timestamps, TransmitDelayReading};
pub use start::{Fault, FilterBytes, IpVersion, LatencyFrom, Start, StreamRequest, Timing};
pub use traffic::{Field, First, Layer, SizeSweep, Varied, WeightedSize};

/// The version of the protocol: a changed major number is refused by both sides. The minor one rises with every field
/// or command that a controller may rely on; a controller refuses an engine whose minor number is below its own.
pub const PROTOCOL_VERSION: &str = "1.7";

/// The first number of a version, `None` where the text is not a version.
pub fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}
