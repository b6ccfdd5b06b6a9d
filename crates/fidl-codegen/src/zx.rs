//! The library `zx`, for files that use it and do not bring it along: handles and the types of
//! Zircon, as far as they mean something outside of Fuchsia.

/// Name of the library.
pub(crate) const NAME: &str = "zx";

/// Text of the library. Names and numbers are facts of Fuchsia's kernel interface.
pub(crate) const TEXT: &str = r#"
library zx;

alias Status = int32;
alias Time = int64;
alias InstantMono = int64;
alias InstantBoot = int64;
alias Duration = int64;
alias DurationMono = int64;
alias DurationBoot = int64;
alias Ticks = int64;
alias Koid = uint64;
alias Off = uint64;
alias Signals = uint32;
alias Vaddr = uint64;
alias Paddr = uint64;

const CHANNEL_MAX_MSG_BYTES uint64 = 65536;
const CHANNEL_MAX_MSG_HANDLES uint64 = 64;
const MAX_NAME_LEN uint64 = 32;
const MAX_CPUS uint64 = 512;
const PAGE_SIZE uint64 = 4096;

type ObjType = strict enum : uint32 {
    NONE = 0;
    PROCESS = 1;
    THREAD = 2;
    VMO = 3;
    CHANNEL = 4;
    EVENT = 5;
    PORT = 6;
    INTERRUPT = 9;
    PCI_DEVICE = 11;
    DEBUGLOG = 12;
    SOCKET = 14;
    RESOURCE = 15;
    EVENTPAIR = 16;
    JOB = 17;
    VMAR = 18;
    FIFO = 19;
    GUEST = 20;
    VCPU = 21;
    TIMER = 22;
    IOMMU = 23;
    BTI = 24;
    PROFILE = 25;
    PMT = 26;
    SUSPEND_TOKEN = 27;
    PAGER = 28;
    EXCEPTION = 29;
    CLOCK = 30;
    STREAM = 31;
    MSI = 32;
    IOB = 33;
    COUNTER = 34;
};

type Rights = strict bits : uint32 {
    DUPLICATE = 0x1;
    TRANSFER = 0x2;
    READ = 0x4;
    WRITE = 0x8;
    EXECUTE = 0x10;
    MAP = 0x20;
    GET_PROPERTY = 0x40;
    SET_PROPERTY = 0x80;
    ENUMERATE = 0x100;
    DESTROY = 0x200;
    SET_POLICY = 0x400;
    GET_POLICY = 0x800;
    SIGNAL = 0x1000;
    SIGNAL_PEER = 0x2000;
    WAIT = 0x4000;
    INSPECT = 0x8000;
    MANAGE_JOB = 0x10000;
    MANAGE_PROCESS = 0x20000;
    MANAGE_THREAD = 0x40000;
    APPLY_PROFILE = 0x80000;
    MANAGE_SOCKET = 0x100000;
    OP_CHILDREN = 0x200000;
    RESIZE = 0x400000;
    ATTACH_VMO = 0x800000;
    MANAGE_VMO = 0x1000000;
    SAME_RIGHTS = 0x80000000;
};

resource_definition Handle : uint32 {
    properties {
        subtype ObjType;
        rights Rights;
    };
};
"#;

/// Names of the same in files from before 2021.
pub(crate) const OLD_NAMES: &str = "
library zx;

alias status = int32;
alias time = int64;
alias duration = int64;
alias ticks = int64;
alias koid = uint64;
alias vaddr = uint64;
alias paddr = uint64;
alias paddr32 = uint32;
alias gpaddr = uint64;
alias off = uint64;
alias procarg = uint32;
alias signals = uint32;
alias rights = Rights;
alias obj_type = ObjType;

resource_definition handle : uint32 {
    properties {
        subtype ObjType;
        rights Rights;
    };
};
";
