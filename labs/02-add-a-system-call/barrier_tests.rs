
/// Of the lab: membarrier(2).
mod barrier {
    use super::*;

    const QUERY: u64 = 0;
    const GLOBAL: u64 = 1;

    #[test]
    fn a_query_names_the_commands_that_work() {
        let mut world = World::new();
        assert_eq!(world.call(world.init, nr::MEMBARRIER, &[QUERY, 0]), Some(Ok(GLOBAL)));
        assert_eq!(world.call(world.init, nr::MEMBARRIER, &[GLOBAL, 0]), Some(Ok(0)));
    }

    #[test]
    fn unknown_commands_and_flags_are_refused() {
        let mut world = World::new();
        assert_eq!(world.call(world.init, nr::MEMBARRIER, &[8, 0]), Some(Err(Errno::EINVAL)));
        assert_eq!(world.call(world.init, nr::MEMBARRIER, &[QUERY, 1]), Some(Err(Errno::EINVAL)));
        assert_eq!(world.call(world.init, nr::MEMBARRIER, &[GLOBAL, 1]), Some(Err(Errno::EINVAL)));
    }
}
