//! Kernels of `src/cuda` on the CPU: their texts compiled by the C++ compiler with `shim.h`, and launched on the host's memory.

use privet_kernels::cuda::Kernel;
use std::ffi::{CStr, CString, c_char, c_void};
use std::process::Command;

type Launch = unsafe extern "C" fn(*const u32, usize, u64, *const *const c_void) -> *const c_char;

/// A kernel, compiled.
pub struct Shim {
    kernel: Kernel,
    launch: Launch,
}

/// The C++ compiler; none where there is none, with a line that says so.
fn compiler() -> Option<String> {
    let name = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
    let there = Command::new(&name).arg("--version").output().is_ok_and(|o| o.status.success());
    if !there {
        println!("SKIPPED: kernels for GPUs, because there is no C++ compiler `{name}`");
    }
    there.then_some(name)
}

impl Shim {
    /// The kernel as it is; none without a compiler.
    pub fn new(kernel: Kernel) -> Option<Shim> {
        let text = kernel.text.to_owned();
        Shim::of(kernel, &text)
    }

    /// The kernel with another text. Panics where that is no C++.
    pub fn of(kernel: Kernel, text: &str) -> Option<Shim> {
        let compiler = compiler()?;
        let folder = tempfile::tempdir().expect("a folder for the compiler");
        let [source, library] = ["kernel.cpp", "kernel.so"].map(|f| folder.path().join(f));
        let text = format!("{}\n{text}\nSHIM_KERNEL({})\n", include_str!("shim.h"), kernel.name);
        std::fs::write(&source, text).expect("write the kernel's text");
        let mut command = Command::new(compiler);
        command
            .args([
                "-std=c++17",
                "-O1",
                "-w",
                "-U_FORTIFY_SOURCE",
                "-shared",
                "-fPIC",
                "-Wl,-Bsymbolic",
                "-o",
            ])
            .arg(&library);
        command.args(kernel.constants.iter().map(|(name, value)| format!("-D{name}={value}"))).arg(&source);
        let output = command.output().expect("the C++ compiler");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let path = CString::new(library.to_str().expect("a path of text")).expect("a path");
        // SAFETY: our own library, which runs no code when it is loaded; it stays loaded, so its function stays valid.
        let launch = unsafe {
            let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
            assert!(!handle.is_null(), "{:?}", CStr::from_ptr(libc::dlerror()));
            let symbol = libc::dlsym(handle, c"shim_launch".as_ptr());
            assert!(!symbol.is_null(), "the shim has an entry");
            std::mem::transmute::<*mut c_void, Launch>(symbol)
        };
        Some(Shim { kernel, launch })
    }

    /// Launch a grid of blocks of `threads`. `order` 0 runs threads forwards, 1 backwards, others shuffled.
    ///
    /// # Safety
    /// `args` are the kernel's, and hold addresses of buffers as long as it reads and writes.
    pub unsafe fn launch<A>(
        &mut self,
        grid: [u32; 3],
        threads: u32,
        order: u64,
        args: &A,
    ) -> Result<(), String> {
        let dims = [grid[0], grid[1], grid[2], threads, 1, 1];
        let arguments = [(args as *const A).cast::<c_void>()];
        // SAFETY: the caller's promise. Exclusive, as the library keeps the state of a launch.
        unsafe {
            let error = (self.launch)(dims.as_ptr(), self.kernel.shared as usize, order, arguments.as_ptr());
            if error.is_null() { Ok(()) } else { Err(CStr::from_ptr(error).to_str().unwrap().to_owned()) }
        }
    }
}
