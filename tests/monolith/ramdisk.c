/* ramdisk: a RAM disk for Linux that does what drivers/ramdisk does for Skink, so that the same mistakes can be made in both.
 *
 * The disk is a range of memory that the kernel leaves alone (memmap=BYTES$BASE on its command line), so its content outlives the module.
 * Every transfer is one copy and completes at once.
 *
 * insmod ramdisk.ko base=ADDRESS bytes=BYTES, both multiples of a page; the disk is /dev/ram0.
 */
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/bvec.h>
#include <linux/io.h>
#include <linux/module.h>

static unsigned long base;
module_param(base, ulong, 0444);
MODULE_PARM_DESC(base, "physical address of the disk");

static unsigned long bytes;
module_param(bytes, ulong, 0444);
MODULE_PARM_DESC(bytes, "size of the disk");

static char *image;
static struct blk_mq_tag_set tags;
static struct gendisk *disk;

/* Copies between the image and the memory of the request. */
static blk_status_t transfer(struct request *request)
{
    struct req_iterator iterator;
    struct bio_vec piece;
    u64 position = (u64)blk_rq_pos(request) << SECTOR_SHIFT;

    if (position > bytes || blk_rq_bytes(request) > bytes - position)
        return BLK_STS_IOERR;
    rq_for_each_segment(piece, request, iterator) {
        if (rq_data_dir(request) == WRITE)
            memcpy_from_bvec(image + position, &piece);
        else
            memcpy_to_bvec(&piece, image + position);
        position += piece.bv_len;
    }
    return BLK_STS_OK;
}

static blk_status_t queue_request(struct blk_mq_hw_ctx *context, const struct blk_mq_queue_data *queued)
{
    struct request *request = queued->rq;
    blk_status_t status;

    blk_mq_start_request(request);
    switch (req_op(request)) {
    case REQ_OP_READ:
    case REQ_OP_WRITE:
        status = transfer(request);
        break;
    case REQ_OP_FLUSH:
        status = BLK_STS_OK;
        break;
    default:
        status = BLK_STS_NOTSUPP;
    }
    blk_mq_end_request(request, status);
    return BLK_STS_OK;
}

static const struct blk_mq_ops operations = { .queue_rq = queue_request };

static const struct block_device_operations disk_operations = { .owner = THIS_MODULE };

static int add_ramdisk(void)
{
    disk = blk_mq_alloc_disk(&tags, NULL);
    if (IS_ERR(disk))
        return PTR_ERR(disk);
    strscpy(disk->disk_name, "ram0", sizeof(disk->disk_name));
    disk->fops = &disk_operations;
    set_capacity(disk, bytes >> SECTOR_SHIFT);
    return add_disk(disk);
}

static int __init ramdisk_init(void)
{
    int error;

    if (!bytes || !PAGE_ALIGNED(base | bytes))
        return -EINVAL;
    image = memremap(base, bytes, MEMREMAP_WB);
    if (!image)
        return -ENOMEM;
    tags.ops = &operations;
    tags.nr_hw_queues = 1;
    tags.queue_depth = 64;
    tags.numa_node = NUMA_NO_NODE;
    tags.flags = BLK_MQ_F_SHOULD_MERGE;
    error = blk_mq_alloc_tag_set(&tags);
    if (error)
        goto unmap;
    error = add_ramdisk();
    if (!error)
        return 0;
    if (!IS_ERR(disk))
        put_disk(disk);
    blk_mq_free_tag_set(&tags);
unmap:
    memunmap(image);
    return error;
}

static void __exit ramdisk_exit(void)
{
    del_gendisk(disk);
    put_disk(disk);
    blk_mq_free_tag_set(&tags);
    memunmap(image);
}

module_init(ramdisk_init);
module_exit(ramdisk_exit);
MODULE_DESCRIPTION("RAM disk in reserved memory, for fault injection");
MODULE_LICENSE("Dual MIT/GPL");
