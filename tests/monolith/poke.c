/* poke: lets a test read and change the running text of a module, as `service inject NAME poke` does on Skink.
 *
 * insmod poke.ko base=ADDRESS bytes=BYTES names the text; /dev/poke is these bytes. Text is mapped read-only, so a write goes through
 * a second mapping of its page. One processor only: no other may run the text meanwhile.
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

static unsigned long base;
module_param(base, ulong, 0444);
MODULE_PARM_DESC(base, "address of the text");

static unsigned long bytes;
module_param(bytes, ulong, 0444);
MODULE_PARM_DESC(bytes, "length of the text");

static ssize_t poke_read(struct file *file, char __user *to, size_t length, loff_t *position)
{
    return simple_read_from_buffer(to, length, position, (void *)base, bytes);
}

static int poke_byte(unsigned long address, u8 byte)
{
    struct page *page = vmalloc_to_page((void *)address);
    u8 *mapped = page ? vmap(&page, 1, VM_MAP, PAGE_KERNEL) : NULL;

    if (!mapped)
        return -EFAULT;
    mapped[offset_in_page(address)] = byte;
    vunmap(mapped);
    return 0;
}

static ssize_t poke_write(struct file *file, const char __user *from, size_t length, loff_t *position)
{
    u8 patch[16];
    size_t i;

    if (*position < 0 || *position >= bytes || length > bytes - *position || length > sizeof(patch))
        return -EINVAL;
    if (copy_from_user(patch, from, length))
        return -EFAULT;
    for (i = 0; i < length; i++) {
        int error = poke_byte(base + *position + i, patch[i]);

        if (error)
            return error;
    }
    *position += length;
    return length;
}

static const struct file_operations operations = {
    .owner = THIS_MODULE,
    .read = poke_read,
    .write = poke_write,
    .llseek = default_llseek,
};

static struct miscdevice device = { .minor = MISC_DYNAMIC_MINOR, .name = "poke", .fops = &operations };

module_misc_device(device);
MODULE_DESCRIPTION("changes the text of a module, for fault injection");
MODULE_LICENSE("Dual MIT/GPL");
