//! The protocol of the PCI service: it finds devices and lets a driver access only its own.

protocol! {
    /// PCI. rs asks for the resources of a device before it starts its driver; a driver touches only the configuration space of the device
    /// that the system file gives it (`pci = ["1af4:1042"]`).
    pub "pci" = 10;
    /// rs: assigns device number `index` with this vendor and device to the driver in `slot`. Returns its bus address and interrupt
    /// lines: one in each of the low two bytes, 0xff: none. (IDE controllers may have two.) `ENODEV`: no such device.
    /// `sizes`: 0, or what a predecessor returned for this device. With 0, pci measures the device's ranges, and the device does not answer
    /// its driver meanwhile; so nobody may be using it.
    Assign = 1 { slot: u64, vendor: u64, device: u64, index: u64, sizes: u64 } -> { address: u64, interrupt: u64, sizes: u64 }
    /// rs: returns memory or port range number `bar` (0 to 5) of an assigned device: start, length (0: none), whether it is ports. An IDE
    /// controller in compatibility mode has 0x1f0 to 0x1f7 as number 0, 0x3f6 as 1, 0x170 to 0x177 as 2, 0x376 as 3.
    Bar = 2 { slot: u64, bar: u64 } -> { start: u64, bytes: u64, ports: bool }
    /// A driver: reads `width` bytes (1, 2, 4) of its device's configuration space.
    ReadConfig = 3 { offset: u64, width: u64 } -> { value: u64 }
    /// A driver: writes `width` bytes of its device's configuration space. `EPERM`: a BAR.
    WriteConfig = 4 { offset: u64, width: u64, value: u64 }
    /// A driver: as `Bar`, for its own device.
    OwnBar = 5 { bar: u64 } -> { start: u64, bytes: u64, ports: bool }
    /// A driver: lets its device reach all DMA memory that vm has given to the driver's slot. With an IOMMU, a device reaches no other
    /// memory; without one, it reaches all of it, and this does nothing. `ENODEV`: it has no device; `ENOMEM`: no room for the tables.
    ShareDma = 6 { }
}
