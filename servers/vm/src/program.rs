pub fn main(_: sys::Start) {}
