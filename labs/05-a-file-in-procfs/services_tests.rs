
/// Of the lab: /proc/services.
mod services_file {
    use super::*;

    #[test]
    fn services_are_listed_with_their_pids_and_programs_are_not() {
        assert_eq!(read("services"), "40 ext2\n");
    }

    #[test]
    fn the_file_stands_in_the_directory() {
        assert!(list("", 100).contains(&String::from("services")), "{:?}", list("", 100));
    }
}
