//! System V IPC: semaphores.

mod semaphores;
